"""Hosts that are namespaces: each has its own network, host name, processes and mounts, behind one bridge. All of it
ends with the process that made it."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

# The address of the rig itself, on the bridge: the web server, and the server of the file system.
SERVER = "10.77.0.1"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def build_bridge() -> None:
    ip("link", "set", "lo", "up")
    ip("link", "add", "bridge", "type", "bridge")
    ip("address", "add", f"{SERVER}/24", "dev", "bridge")
    ip("link", "set", "bridge", "up")


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def innermost(pid: int) -> int:
    """The program that a chain of commands such as nsenter(1) runs."""
    while below := children(pid):
        pid = below[0]
    return pid


def cpu_seconds(pids: Sequence[int]) -> float:
    """What these processes have used so far."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


class Host:
    """`number`: from 2, the last part of its address. `work`: its own directory, which the others do not use."""

    def __init__(self, name: str, number: int, work: Path):
        self.name = name
        self.cable = f"cable{number}"
        self.address = f"10.77.0.{number}"
        self.work = work
        work.mkdir()
        # Minutes by which its clock is wrong.
        self.clock = 0
        # faketime(1) has files there that are named by process ids, and other hosts have the same ids.
        start = f"hostname {name} && ip link set lo up && mount -t tmpfs none /dev/shm && exec sleep infinity"
        unshare = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", start]
        self.process = subprocess.Popen(unshare, stdin=subprocess.DEVNULL)
        while not children(self.process.pid):
            time.sleep(0.01)
        self.init = children(self.process.pid)[0]
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "cable", "netns", str(self.init))
        ip("link", "set", self.cable, "master", "bridge", "up")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "cable")
        self.run("ip", "link", "set", "cable", "up")

    def command(self, *words: str | Path) -> list[str | Path]:
        enter = ["nsenter", "--target", str(self.init), "--net", "--uts", "--mount", "--pid"]
        return [*enter, *self.clock_shift(), *words]

    def clock_shift(self) -> list[str]:
        if not self.clock:
            return []
        # By default faketime(1) also shifts the times of files that are read, and the clock of time-outs.
        return ["env", "NO_FAKE_STAT=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "faketime", "-m", "-f", f"{self.clock:+}m"]

    def run(self, *words: str | Path, timeout: float = 60) -> str:
        done = subprocess.run(self.command(*words), capture_output=True, text=True, errors="replace", timeout=timeout, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{self.name}: {words}: status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def pull(self) -> None:
        """Cuts it off from the others, from the web server and from the file system."""
        ip("link", "set", self.cable, "down")

    def plug(self) -> None:
        ip("link", "set", self.cable, "up")

    def end(self) -> None:
        """Kills all its processes, and so removes its mounts."""
        for pid in (self.init, self.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        subprocess.run(["ip", "link", "delete", self.cable], stderr=subprocess.DEVNULL, check=False)


class Rig(Host):
    """The rig itself, which mounts the file system as well, to look at it."""

    def __init__(self, work: Path):
        self.name = "rig"
        self.address = SERVER
        self.work = work
        self.clock = 0
        work.mkdir()

    def command(self, *words: str | Path) -> list[str | Path]:
        return list(words)
