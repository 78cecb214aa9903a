"""What a spool and its outputs have to look like when all jobs are done."""

import re
import subprocess
import time
from collections import Counter
from pathlib import Path

from server import Server


class Witness:
    """Sees each name that comes to or leaves `files/` and `done/`, while the context lasts: how a file stands at the end does not tell
    how often it was put there."""

    def __init__(self, spool: Path, record: Path):
        self.record = record
        self.complaints = record.with_suffix(".err")
        events = [f"--event={event}" for event in ("create", "moved_to", "delete", "moved_from")]
        self.command = ["inotifywait", "--monitor", *events, "--format=%e %w%f", "--outfile", record]
        self.command += [spool / "files", spool / "done"]

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
        """How often each path came, and went."""
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


def place_problems(spool: Path, jobs: set[str]) -> list[str]:
    """Each job once, in done/, and nothing else anywhere."""
    problems = []
    done = names(spool / "done")
    if lost := jobs - done:
        problems.append(f"not done: {some(lost)}")
    if strange := done - jobs:
        problems.append(f"done, but never dropped: {some(strange)}")
    for directory in ("new", "cur", "partial", "failed", "hold"):
        if left := names(spool / directory):
            problems.append(f"left in {directory}/: {some(left)}")
    if strange := names(spool / "files") - jobs:
        problems.append(f"in files/, but no job's output: {some(strange)}")
    return problems


def witness_problems(spool: Path, jobs: set[str], witness: Witness) -> list[str]:
    came, went = witness.seen()
    problems = []
    for directory, verb in (("files", "published"), ("done", "moved to done/")):
        paths = {f"{spool}/{directory}/{job}" for job in jobs}
        if unseen := {path for path in paths if came[path] == 0}:
            problems.append(f"not seen to be {verb}: {some(unseen)}")
        if twice := {path for path in paths if came[path] > 1}:
            problems.append(f"{verb} more than once: {some(twice)}")
        if gone := {path for path in paths if went[path] > 0}:
            problems.append(f"{verb}, and taken away: {some(gone)}")
    return problems


def payload_problems(spool: Path, job: str, server: Server) -> list[str]:
    file = spool / "files" / job
    if not file.exists():
        return [f"{job}: no payload"]
    problems = []
    content = file.read_bytes()
    if server.version_of(job, content) is None:
        problems.append(f"{job}: its {len(content)} bytes are no version that there was")
    if file.stat().st_nlink != 1:
        problems.append(f"{job}: its payload has {file.stat().st_nlink} names")
    receipt = spool / "done" / job
    if not receipt.exists():
        return problems
    journal = receipt.read_text()
    written = journal.count("\ndone: ")
    if written != 1:
        problems.append(f"{job}: {written} receipts")
    inode = re.findall(r"^verified: .* part=(\d+)", journal, re.MULTILINE)[-1:]
    if inode != [str(file.stat().st_ino)]:
        problems.append(f"{job}: the payload is not the file that the receipt names")
    return problems


def problems(spool: Path, jobs: set[str], server: Server, witness: Witness) -> list[str]:
    found = place_problems(spool, jobs) + witness_problems(spool, jobs, witness)
    return found + [problem for job in sorted(jobs) for problem in payload_problems(spool, job, server)]
