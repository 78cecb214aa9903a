"""What the shared file systems have in common, and those that need only a directory."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from network import SERVER, Host, children, cpu_seconds

# Seconds in which a server or a mount has to be ready.
PATIENCE = 60


class SharedFileSystem:
    """`work`: a directory for its own files."""

    name: str
    programs: Sequence[str]
    # As a person would give them to mount it.
    options = ""
    # The faults that mean nothing there.
    without: Sequence[str] = ()

    def __init__(self, work: Path):
        self.work = work
        work.mkdir()
        self.servers: list[subprocess.Popen] = []
        # By host and place: the programs that serve them; and those that were killed and are still mounted.
        self.mounts: dict[str, subprocess.Popen] = {}
        self.lost: set[str] = set()
        self.connections: set[str] = set()

    def start(self) -> None:
        """Starts its servers."""

    def client(self, point: Path) -> list[str | Path]:
        """The command that mounts it and stays in the foreground."""
        raise NotImplementedError

    def serve(self, name: str, *command: str | Path) -> None:
        with open(self.work / f"{name}.log", "wb") as log:
            self.servers.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def mount(self, host: Host, place: str = "mnt") -> Path:
        point = host.work / place
        if f"{host.name}/{place}" in self.lost:
            self.lost.discard(f"{host.name}/{place}")
            host.run("umount", "--lazy", point)
        point.mkdir(exist_ok=True)
        with open(host.work / f"{place}.log", "ab") as log:
            process = subprocess.Popen(host.command(*self.client(point)), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.mounts[f"{host.name}/{place}"] = process
        until = time.monotonic() + PATIENCE
        while True:
            # A mount whose server does not answer yet has type and size 0, and some then hang.
            command = host.command("mountpoint", "--fs-devno", point)
            seen = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
            if seen.returncode == 0:
                # The number of its device is that of its connection to the kernel.
                self.connections.add(seen.stdout.strip().partition(":")[2])
                return point
            if process.poll() is not None or time.monotonic() > until:
                said = (host.work / f"{place}.log").read_text(errors="replace")
                raise SystemExit(f"{self.name}: {host.name} cannot mount it: {said}")
            time.sleep(0.1)

    def lose_mount(self, host: Host, place: str = "mnt") -> None:
        """Kills the program that serves the mount, as the kernel does for lack of memory."""
        for pid in family(self.mounts[f"{host.name}/{place}"].pid):
            os.kill(pid, signal.SIGKILL)
        self.mounts.pop(f"{host.name}/{place}").wait()
        self.lost.add(f"{host.name}/{place}")

    def unmount(self, host: Host, place: str = "mnt") -> None:
        if f"{host.name}/{place}" in self.mounts:
            self.lose_mount(host, place)
        self.lost.discard(f"{host.name}/{place}")
        host.run("umount", "--lazy", host.work / place)

    def mount_anew(self, hosts: Sequence[Host]) -> None:
        for host in hosts:
            self.unmount(host)
            self.mount(host)

    def stop(self) -> None:
        """Cuts all connections of its mounts to the kernel: a mfsmount that waits for a page which it has to fill itself
        would outlive even SIGKILL."""
        control = Path("/sys/fs/fuse/connections")
        if not os.path.ismount(control):
            subprocess.run(["mount", "-t", "fusectl", "none", control], check=True)
        for connection in self.connections:
            try:
                (control / connection / "abort").write_text("1")
            except FileNotFoundError:
                pass  # It has ended.

    def server_cpu(self) -> float:
        """Seconds of CPU that its servers have used."""
        return cpu_seconds([pid for server in self.servers for pid in family(server.pid)])


def family(pid: int) -> list[int]:
    return [pid, *(below for child in children(pid) for below in family(child))]


class Bindfs(SharedFileSystem):
    """One directory that each host sees through a FUSE mount of its own: no locks between hosts, and what is known of
    a name counts for a second."""

    name = "bindfs"
    programs = ("bindfs",)
    without = ("host cut off",)

    def start(self) -> None:
        (self.work / "shared").mkdir()

    def client(self, point: Path) -> list[str | Path]:
        return ["bindfs", "-f", self.work / "shared", point]


class SSHFS(SharedFileSystem):
    name = "SSHFS"
    programs = ("sshfs", "/usr/sbin/sshd")
    options = "reconnect,ServerAliveInterval=5,ServerAliveCountMax=3,dir_cache=no"

    def start(self) -> None:
        (self.work / "shared").mkdir()
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.work / key], check=True)
        (self.work / "user.pub").rename(self.work / "authorized")
        # sshd wants this directory. /run is private to the rig.
        Path("/run/sshd").mkdir(exist_ok=True)
        settings = {
            "ListenAddress": f"{SERVER}:2222",
            "HostKey": self.work / "host",
            "AuthorizedKeysFile": self.work / "authorized",
            "PidFile": self.work / "sshd.pid",
            "StrictModes": "no",
            "PermitRootLogin": "yes",
            "MaxStartups": "100",
            "Subsystem": "sftp internal-sftp",
        }
        configuration = self.work / "sshd_config"
        configuration.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        self.serve("sshd", "/usr/sbin/sshd", "-D", "-e", "-f", configuration)
        until = time.monotonic() + PATIENCE
        while b"listening" not in (self.work / "sshd.log").read_bytes():
            if time.monotonic() > until:
                raise SystemExit("sshd: " + (self.work / "sshd.log").read_text())
            time.sleep(0.05)

    def client(self, point: Path) -> list[str | Path]:
        secrets = f"port=2222,IdentityFile={self.work}/user,StrictHostKeyChecking=no,UserKnownHostsFile=/dev/null"
        return ["sshfs", "-f", f"root@{SERVER}:{self.work}/shared", point, "-o", f"{secrets},{self.options}"]


class CachingSSHFS(SSHFS):
    """As sshfs(1) mounts it by default: what it knows of a directory counts for 20 seconds."""

    name = "SSHFS, default options"
    options = "reconnect,ServerAliveInterval=5,ServerAliveCountMax=3"
