"""One file system with its hosts, and a spool on it for each scenario."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from filesystems import SharedFileSystem
from network import Host, Rig
from origin import Origin
from verdict import problems
from worker import Worker

# Seconds after which something hangs.
PATIENCE = 300


class Stage:
    def __init__(self, program: Path, system: SharedFileSystem, work: Path, lease: int):
        self.program = program
        self.system = system
        self.work = work
        self.lease = lease
        self.hosts: list[Host] = []
        self.workers: list[Worker] = []
        self.spools = 0
        (work / "logs").mkdir()
        self.origin = Origin(work / "origin")
        # It mounts the file system as well, to look at it.
        self.rig = Rig(work / "rig")

    def start(self, names: Iterable[str]) -> None:
        self.origin.start()
        self.system.start()
        self.system.mount(self.rig)
        self.hosts = [Host(name, number, self.work / name) for number, name in enumerate(names, start=2)]
        for host in self.hosts:
            self.system.mount(host)
        self.view = self.rig.work / "mnt"

    def end(self) -> None:
        for worker in self.workers:
            worker.end()
        for host in self.hosts:
            host.end()
        # Otherwise it would be in the way when the directory is removed.
        subprocess.run(["umount", "--lazy", self.rig.work / "mnt"], check=False)
        self.system.stop()

    # MARK: a scenario

    def new_spool(self) -> None:
        """Each scenario has a spool of its own."""
        self.spools += 1
        self.spool = f"spool{self.spools}"
        self.workers = []
        self.dropped: set[str] = set()
        self.hosts[0].run(self.program, "init", self.at(self.hosts[0]))

    def at(self, host: Host) -> Path:
        """The spool as the host sees it."""
        return host.work / "mnt" / self.spool

    def drop(self, host: Host, count: int, is_slow: bool) -> list[str]:
        """Drops jobs by one command; returns their names."""
        first = len(self.origin.content)
        names = [f"job{number:05}" for number in range(first, first + count)]
        urls = host.work / "list"
        urls.write_text("".join(self.origin.add(name, is_slow) + "\n" for name in names))
        host.run(self.program, "add", "--spool", self.at(host), "--from", urls, timeout=PATIENCE)
        self.dropped |= set(names)
        return names

    def work_on(self, host: Host, *options: str, behind: Sequence[str] = ()) -> Worker:
        log = self.work / "logs" / f"{self.spool}-{len(self.workers)}-{host.name}"
        worker = Worker(self.program, host, self.at(host), log, ["--lease", f"{self.lease}s", *options], behind)
        self.workers.append(worker)
        return worker

    def wait(self, what: str, is_true: Callable[[], bool], patience: float = PATIENCE) -> float:
        """Returns the seconds that it took."""
        begun = time.monotonic()
        while not is_true():
            if time.monotonic() - begun > patience:
                raise TimeoutError(f"not within {patience:.0f} s: {what}")
            time.sleep(0.02)
        return time.monotonic() - begun

    def done(self, *but: Worker) -> set[str]:
        """The jobs that workers have reported as done."""
        return set().union(*(worker.jobs("done") for worker in self.workers if worker not in but))

    def stop_workers(self) -> list[str]:
        """What is wrong with how they ended."""
        wrong = []
        for worker in self.workers:
            status = worker.end()
            worker.look()
            # Before it handled the signal.
            is_unborn = status == -signal.SIGTERM and not worker.events
            if status not in (0, 75) and not is_unborn:
                wrong.append(f"{worker.host.name}'s worker ended with {status}: {' '.join(worker.said[-3:])}".strip())
        return wrong

    def gets(self) -> float:
        """Requests for each job."""
        return self.origin.gets(self.dropped) / max(1, len(self.dropped))

    def lost_claims(self) -> str:
        """The share of the tries to claim a job at which another worker was faster, as the running workers say."""
        command = [self.program, "status", "--json", self.view / self.spool]

        def workers() -> list[dict]:
            return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE).stdout)["workers"]

        # A worker's file is at most a second old.
        self.wait("the workers tell of all claims", lambda: sum(one["claims"] or 0 for one in workers()) >= len(self.dropped))
        own, lost = (sum(one[key] or 0 for one in workers()) for key in ("claims", "lost"))
        return f"{lost / (own + lost):.1%}"

    def problems(self) -> list[str]:
        """What is wrong with the spool. What a host has cached may be old, so this waits until all is well."""
        # Data that no job has any more: a worker that slept had it locked.
        subprocess.run([self.program, "clean", self.view / self.spool], capture_output=True, check=False, timeout=PATIENCE)
        until = time.monotonic() + 25
        while True:
            found = problems(self.view / self.spool, {name: self.origin.content[name] for name in self.dropped}, self.workers)
            if not found or time.monotonic() > until:
                return found
            time.sleep(1)
