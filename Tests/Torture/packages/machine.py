"""A fresh Debian that systemd-nspawn has booted, with no network but its own loopback."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

MIRROR = os.environ.get("MIRROR", "http://deb.debian.org/debian")
# What a small server has, and nothing that spoolrun needs besides it.
PACKAGES = "systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd"
PATIENCE = 120
# nspawn wants the cgroup hierarchy that systemd wants, whatever the host has.
BOOT = """
mountpoint -q /sys/fs/cgroup && umount -l /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/$1
echo $$ >/sys/fs/cgroup/$1/cgroup.procs
exec systemd-nspawn --quiet --directory "$2" --boot --register=no --keep-unit --private-network --console=pipe
"""


class Unavailable(Exception):
    """Why this machine cannot play a suite of Debian."""


def wait(what: str, condition):
    """The first result of `condition` that counts as true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {PATIENCE} s")


def base(suite: str, cache: Path) -> Path:
    """The archive of the root of a suite, made by mmdebstrap once a week."""
    archive = cache / f"{suite}.tar"
    if archive.exists() and time.time() - archive.stat().st_mtime < 7 * 86400:
        return archive
    cache.mkdir(parents=True, exist_ok=True)
    made = archive.with_suffix(".new")
    command = ["mmdebstrap", "--quiet", "--variant=minbase", "--format=tar", f"--include={PACKAGES}"]
    command += ["--skip=cleanup/apt/lists", suite, str(made), MIRROR]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"mmdebstrap {suite}: {done.stderr.strip().splitlines()[-1:]}")
    made.rename(archive)
    return archive


class Root:
    """An unpacked root."""

    def __init__(self, archive: Path, place: Path):
        self.path = place
        place.mkdir()
        subprocess.run(["tar", "-C", place, "-xpf", archive], check=True)
        shutil.copy("/etc/resolv.conf", place / "etc/resolv.conf")

    def put(self, file: Path, to: str):
        shutil.copy(file, self.path / to.lstrip("/"))

    def chroot(self, *command: str) -> str:
        return run(["chroot", str(self.path), *command])


def run(command: list[str], **options) -> str:
    """What the command prints. A failure shows it."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", **options)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def first_process(nspawn: int) -> int | None:
    """The child that is the first process of the machine. Others come and go before it."""
    for child in Path(f"/proc/{nspawn}/task/{nspawn}/children").read_text().split():
        try:
            lines = Path(f"/proc/{child}/status").read_text().splitlines()
        except OSError:
            continue
        if "Name:\tsystemd" in lines and any(line.split()[0] == "NSpid:" and line.split()[-1] == "1" for line in lines):
            return int(child)
    return None


class Machine:
    """The root, booted. A context: leaving it ends the machine."""

    def __init__(self, root: Root):
        self.root = root
        self.children = []
        self.leader = 0

    def __enter__(self):
        name = f"spoolrun-packages-{os.getpid()}"
        log = open(self.root.path.with_suffix(".console"), "wb")
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", BOOT, "boot", name, str(self.root.path)]
        nspawn = self.start(command, stdout=log)
        try:
            self.leader = wait("systemd runs", lambda: first_process(nspawn.pid))
            # Some unit of the host's kernel may fail in a container.
            wait("systemd has booted", lambda: self.says("systemctl", "is-system-running") in ("running", "degraded"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.leader:
            # It ends only when all of its processes have.
            os.kill(self.leader, signal.SIGKILL)
            wait("the machine has ended", lambda: not Path(f"/proc/{self.leader}/root/etc").exists())
        for child in reversed(self.children):
            child.send_signal(signal.SIGKILL)
            child.wait()

    def start(self, command, **options) -> subprocess.Popen:
        """Starts a program that ends with the machine."""
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, **options)
        self.children.append(child)
        return child

    def beside(self, *command: str, **options) -> subprocess.Popen:
        """Starts a program of the host in the machine's network."""
        return self.start(["nsenter", "--target", str(self.leader), "--net", *command], **options)

    def inside(self, *command: str) -> list[str]:
        return ["nsenter", "--target", str(self.leader), "--all", "--root", "--wd", "env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *command]

    def run(self, *command: str) -> str:
        return run(self.inside(*command))

    def says(self, *command: str) -> str:
        """What the command prints, whether it succeeds or fails."""
        done = subprocess.run(self.inside(*command), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.stdout.strip()

    def file(self, path: str) -> Path:
        return self.root.path / path.lstrip("/")


