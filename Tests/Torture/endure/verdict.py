"""Checks a spool and its outputs when all jobs are done."""

import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from server import Server


class Witness:
    """Records each name that appears in or leaves the directories while the context lasts: the files at the end do not
    show how often one was published."""

    def __init__(self, spool: Path, record: Path, directories: tuple[str, ...] = ("files", "done")):
        self.record = record
        self.complaints = record.with_suffix(".err")
        events = [f"--event={event}" for event in ("create", "moved_to", "delete", "moved_from")]
        self.command = ["inotifywait", "--monitor", *events, "--format=%e %w%f", "--outfile", record]
        self.command += [spool / directory for directory in directories]

    def __enter__(self) -> "Witness":
        with open(self.complaints, "wb") as output:
            self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=output)
        while b"Watches established" not in self.complaints.read_bytes():
            if self.process.poll() is not None:
                raise SystemExit("inotifywait: " + self.complaints.read_text())
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    def seen(self) -> tuple[Counter[str], Counter[str]]:
        """How often each path appeared, and disappeared."""
        came: Counter[str] = Counter()
        went: Counter[str] = Counter()
        for line in self.record.read_text().splitlines():
            event, _, path = line.partition(" ")
            if event in ("CREATE", "MOVED_TO"):
                came[path] += 1
            elif event in ("DELETE", "MOVED_FROM"):
                went[path] += 1
            else:
                raise SystemExit(f"inotifywait: {line}")
        return came, went


def names(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()}


def some(found: set[str]) -> str:
    return f"{len(found)}, such as {', '.join(sorted(found)[:3])}"


def job_of(name: str) -> str:
    """A job's name as it was dropped. Each time that a sleeping worker has its data locked, it continues as `NAME~2`,
    `NAME~3`, … (`NAME~2~2` in 0.1)."""
    return re.sub(r"(~[1-9][0-9]*)+$", "", name)


def receipts(spool: Path, jobs: set[str], is_numbered: bool) -> dict[str, list[Path]]:
    """The files in done/ by job, including those whose name no job can have."""
    found: dict[str, list[Path]] = {job: [] for job in jobs}
    for path in (spool / "done").iterdir():
        found.setdefault(job_of(path.name) if is_numbered else path.name, []).append(path)
    return found


def place_problems(spool: Path, jobs: set[str], done: dict[str, list[Path]]) -> list[str]:
    """Checks that each job is in done/ once, and that there is nothing else."""
    problems = []
    if lost := {job for job in jobs if not done[job]}:
        problems.append(f"not done: {some(lost)}")
    if twice := {job for job in jobs if len(done[job]) > 1}:
        problems.append(f"done under several names: {some(twice)}")
    if strange := set(done) - jobs:
        problems.append(f"done, but never dropped: {some(strange)}")
    for directory in ("new", "cur", "partial", "failed", "hold"):
        if left := names(spool / directory):
            problems.append(f"left in {directory}/: {some(left)}")
    if strange := names(spool / "files") - jobs:
        problems.append(f"in files/, but no job's output: {some(strange)}")
    return problems


def witness_problems(spool: Path, jobs: set[str], is_numbered: bool, witness: Witness) -> list[str]:
    came, went = witness.seen()
    problems = []
    for directory, verb, name_of in (("files", "published", str), ("done", "moved to done/", job_of if is_numbered else str)):
        arrivals, departures = (by_name(spool / directory, paths, name_of) for paths in (came, went))
        if unseen := {job for job in jobs if arrivals[job] == 0}:
            problems.append(f"not seen to be {verb}: {some(unseen)}")
        if twice := {job for job in jobs if arrivals[job] > 1}:
            problems.append(f"{verb} more than once: {some(twice)}")
        if gone := {job for job in jobs if departures[job] > 0}:
            problems.append(f"{verb}, and taken away: {some(gone)}")
    return problems


def by_name(directory: Path, paths: Counter[str], name_of: Callable[[str], str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for path, count in paths.items():
        if path.startswith(f"{directory}/"):
            found[name_of(path.removeprefix(f"{directory}/"))] += count
    return found


def payload_problems(spool: Path, job: str, done: list[Path], server: Server) -> list[str]:
    file = spool / "files" / job
    if not file.exists():
        return [f"{job}: no payload"]
    problems = []
    content = file.read_bytes()
    if server.version_of(job, content) is None:
        problems.append(f"{job}: its {len(content)} bytes are no version that there was")
    if file.stat().st_nlink != 1:
        problems.append(f"{job}: its payload has {file.stat().st_nlink} names")
    # Otherwise it has been reported already.
    if len(done) != 1:
        return problems
    journal = done[0].read_text()
    written = journal.count("\ndone: ")
    if written != 1:
        problems.append(f"{job}: {written} receipts")
    inode = re.findall(r"^verified: .* part=(\d+)", journal, re.MULTILINE)[-1:]
    if inode != [str(file.stat().st_ino)]:
        problems.append(f"{job}: the payload is not the file that the receipt names")
    return problems


def problems(spool: Path, jobs: set[str], server: Server, witness: Witness, is_numbered: bool) -> list[str]:
    """`is_numbered`: jobs may have got another number."""
    done = receipts(spool, jobs, is_numbered)
    found = place_problems(spool, jobs, done) + witness_problems(spool, jobs, is_numbered, witness)
    return found + [problem for job in sorted(jobs) for problem in payload_problems(spool, job, done[job], server)]
