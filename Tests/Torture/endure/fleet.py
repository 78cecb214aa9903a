"""Workers on two hosts. Each host has its own name, and perhaps its own view of the spool."""

import os
import random
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

# Seconds in which a worker that was told to stop must end.
PATIENCE = 60
# Longer than the lease (spool(5)), whatever the clock does meanwhile.
PAST_LEASE = 1000


@dataclass
class Host:
    name: str
    spool: Path


@dataclass
class Worker:
    host: Host
    process: subprocess.Popen
    log: Path
    is_stopped: bool = False
    # The signal that was sent to end it.
    ended_by: int = 0

    @property
    def suffix(self) -> str:
        """What the names of its claims end in."""
        return f":{self.host.name}.{self.process.pid}."


def uts_namespace() -> list[str]:
    """The command line in front of a command that gives it its own host name."""
    command = ["unshare", "--uts"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--uts"]
    if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise SystemExit(f"{' '.join(command)}: not allowed here, so there cannot be two hosts")
    return command


def can_mount() -> bool:
    return os.geteuid() == 0 and shutil.which("bindfs") is not None and os.path.exists("/dev/fuse")


class Mounts:
    """The spool as two hosts see a shared file system without locks between them: two FUSE mounts of one directory,
    which keep flock(2) to themselves, cache names for a second, and have their own page caches."""

    def __init__(self, spool: Path, points: list[Path]):
        self.spool = spool
        self.points = points

    def __enter__(self) -> "Mounts":
        for point in self.points:
            point.mkdir()
            subprocess.run(["bindfs", self.spool, point], check=True)
        return self

    def __exit__(self, *_: object) -> None:
        for point in self.points:
            subprocess.run(["umount", "--lazy", point], check=True)


class Fleet:
    """Keeps a number of workers running: in turn on each host, and in turn as watchers and with --once. `fine`: the
    exit statuses that they may have."""

    def __init__(
        self, program: Path, hosts: list[Host], size: int, logs: Path, chance: random.Random, fine: tuple[int, ...] = (0, 75)
    ):
        self.fine = fine
        self.program = program
        self.hosts = hosts
        self.size = size
        self.logs = logs
        self.chance = chance
        self.workers: list[Worker] = []
        self.started = 0
        self.problems: list[str] = []
        self.namespace = uts_namespace()

    def start(self, *options: str) -> Worker:
        host = self.hosts[self.started % len(self.hosts)]
        log = self.logs / f"worker-{self.started}"
        self.started += 1
        rename = [*self.namespace, "sh", "-c", 'hostname "$0" && exec "$@"', host.name]
        command = [*rename, self.program, "-v", "--jobs", "8", "--per-host", "8", *options, host.spool]
        with open(log, "wb") as output:
            worker = Worker(host, subprocess.Popen(command, stderr=output), log)
        self.workers.append(worker)
        return worker

    def refill(self) -> None:
        """Collects workers that have ended, and starts others."""
        for worker in [worker for worker in self.workers if worker.process.poll() is not None]:
            self.workers.remove(worker)
            self.judge(worker)
        while len(self.workers) < self.size:
            self.start(*self.chance.choice([[], ["--once"]]))

    def judge(self, worker: Worker) -> None:
        status = worker.process.returncode
        said = worker.log.read_text(errors="replace").splitlines()
        is_killed = worker.ended_by == signal.SIGKILL and status == -signal.SIGKILL
        # Before it handled the signal.
        is_unborn = worker.ended_by == signal.SIGTERM and status == -signal.SIGTERM and not said
        if not is_killed and not is_unborn and status not in self.fine:
            self.problems.append("\n    ".join([f"a worker ended with {status}; its last lines:", *said[-5:]]))

    def awake(self) -> list[Worker]:
        return [worker for worker in self.workers if not worker.is_stopped]

    def signal(self, worker: Worker, number: int) -> None:
        if worker.process.poll() is not None:
            return  # It has ended; what ended it is not this signal.
        worker.process.send_signal(number)
        worker.is_stopped = number == signal.SIGSTOP
        if number in (signal.SIGKILL, signal.SIGTERM):
            worker.ended_by = number
        if number == signal.SIGKILL:
            worker.process.wait()

    def end(self) -> None:
        for worker in self.workers:
            self.signal(worker, signal.SIGCONT)
            self.signal(worker, signal.SIGTERM)
            try:
                worker.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.problems.append(f"a worker does not end on SIGTERM: {worker.log}")
                self.signal(worker, signal.SIGKILL)
            self.judge(worker)
        self.workers = []


def claims(spool: Path, worker: Worker) -> list[str]:
    return [name for name in os.listdir(spool / "cur") if worker.suffix in name]


def make_old(spool: Path, names: list[str]) -> None:
    """Makes the claims look as if the lease had expired."""
    for name in names:
        try:
            past = os.stat(spool / "cur" / name).st_mtime - PAST_LEASE
            os.utime(spool / "cur" / name, (past, past))
        except FileNotFoundError:
            pass  # It went on meanwhile.
