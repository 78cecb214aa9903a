"""The jobs of a run: what they ask for, which payloads are right, and the tool that drops them."""

import os
import random
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from disks import fsync_directory, fsync_file
from server import Server

LARGE = 12_000_000
# Each large file except the last is the same after the cut.
LARGE_JOBS = 3
CHANGED = "large-2"


@dataclass
class Job:
    name: str
    output: str
    # The payloads that are right: each is a whole version of the file. None: the job has to fail.
    versions: list[bytes]
    # What the output was before, and may be until the job is done.
    before: bytes | None = None
    has_second_name: bool = False

    @property
    def has_to_fail(self) -> bool:
        return not self.versions


@dataclass
class Jobs:
    """Made once for all runs, because the files are always served."""

    url: str
    all: dict[str, Job]

    @property
    def small(self) -> list[Job]:
        return [job for job in self.all.values() if not job.name.startswith("large-")]

    def prepare(self, spool: Path) -> None:
        """Makes, durably, the files that jobs replace."""
        for job in self.all.values():
            if job.before is not None:
                fsync_file(spool / "files" / job.output, job.before)


def serve_jobs(server: Server, small: int) -> Jobs:
    jobs = [large_job(server, f"large-{number}") for number in range(LARGE_JOBS)]
    jobs += [small_job(server, number) for number in range(small)]
    return Jobs(server.url, {job.name: job for job in jobs})


def large_job(server: Server, name: str) -> Job:
    content = os.urandom(LARGE)
    later = os.urandom(LARGE) if name == CHANGED else None
    server.serve(name, content, later)
    return Job(name, name, [content] if later is None else [content, later])


def small_job(server: Server, number: int) -> Job:
    name = f"small-{number:04}"
    if number % 20 == 7:
        return Job(name, name, [])
    content = os.urandom(random.choice([0, 1, 700, 4096, 30_000, 200_000]))
    server.serve(name, content)
    # Every other job makes a directory, whose own name has to be durable, too.
    output = name if number % 2 else f"sets/{number // 8}/{name}"
    before = b"what was here before\n" * 50 if number % 20 == 3 else None
    return Job(name, output, [content], before, number % 10 == 6)


@dataclass
class Promises:
    """What was reported as durable before a cut."""

    # Jobs whose drop has begun, and jobs that were dropped.
    begun: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    checkpoints: dict[str, int] = field(default_factory=dict)

    def begin(self, job: str) -> None:
        self.begun.add(job)

    def drop(self, job: str) -> None:
        self.dropped.add(job)

    def add_log(self, events: Iterable[dict[str, str]]) -> None:
        for event in events:
            job = event.get("job", "")
            if event["event"] == "done":
                self.done.add(job)
            elif event["event"] == "checkpoint":
                self.checkpoints[job] = int(event["at"])

    def copy(self) -> "Promises":
        return Promises(set(self.begun), set(self.dropped), set(self.done), dict(self.checkpoints))


class Dropper:
    """Drops jobs with `spoolrun add`, one after the other, until it is stopped. The exit status 0 of `add` is a
    promise."""

    def __init__(self, program: Path, spool: Path, jobs: Jobs, promises: Promises, preload: dict[str, str] | None = None):
        self.program, self.spool, self.jobs, self.promises = program, spool, jobs, promises
        self.environment = os.environ | (preload or {})
        self.stopped = threading.Event()
        self.thread: threading.Thread | None = None
        self.errors: list[str] = []

    def drop(self, job: Job) -> bool:
        self.promises.begin(job.name)
        if job.has_second_name:
            self.drop_with_second_name(job)
            return True
        arguments = ["--spool", self.spool, "--name", job.name, "--output", job.output]
        overwrite = ["--overwrite"] if job.before is not None else []
        command = [self.program, "add", *arguments, *overwrite, f"{self.jobs.url}/{job.name}"]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment)
        if done.returncode == 0:
            self.promises.drop(job.name)
        else:
            self.errors.append(f"add {job.name} ended with {done.returncode}: {done.stderr.strip()}")
        return done.returncode == 0

    def drop_with_second_name(self, job: Job) -> None:
        """Drops like a `spoolrun add` that dies between link(2) and unlink(2). The worker has to copy such a file
        before it writes to it."""
        first = self.spool / "tmp" / job.name
        fsync_file(first, f"url: {self.jobs.url}/{job.name}\noutput: {job.output}\n".encode())
        os.link(first, self.spool / "new" / job.name)
        fsync_directory(self.spool / "new")
        self.promises.drop(job.name)

    def drop_all(self, pause: float) -> None:
        try:
            for job in self.jobs.small:
                if self.stopped.wait(random.uniform(0, 2 * pause)) or not self.drop(job):
                    return
        except OSError as error:
            # An error in a thread would not be reported otherwise.
            self.errors.append(f"drop: {error}")

    def start(self, pause: float) -> None:
        """Drops the small jobs, with pauses of about this number of seconds."""
        self.thread = threading.Thread(target=self.drop_all, args=[pause])
        self.thread.start()

    def stop(self) -> None:
        self.stopped.set()
        if self.thread is not None:
            self.thread.join()
