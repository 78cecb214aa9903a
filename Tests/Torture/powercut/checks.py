"""Checks a spool after a cut, and after the run that follows it."""

import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jobs import CHANGED, Job, Jobs, Promises

STATES = ["new", "cur", "partial", "done", "failed", "hold"]
CHECKPOINT = re.compile(rb"^checkpoint: (\d+) crc32=([0-9A-F]{8})", re.MULTILINE)


@dataclass
class Standing:
    """A job's file, and its place."""

    state: str
    path: Path
    text: bytes
    inode: int

    def checkpoint(self) -> tuple[int, int] | None:
        """The last checkpoint of the data in the journal: offset and CRC-32."""
        found = None
        for line in self.text[: self.text.rfind(b"\n") + 1].splitlines():
            if match := CHECKPOINT.match(line):
                found = int(match[1]), int(match[2], 16)
            elif line.startswith(b"response:") and b" at=0 " in line + b" ":
                found = None
        return found


def is_journaled(text: bytes, key: bytes) -> bool:
    return any(line.startswith(key + b":") for line in text[: text.rfind(b"\n") + 1].splitlines())


class Spool:
    def __init__(self, root: Path):
        self.root = root
        self.jobs: dict[str, list[Standing]] = {}
        for state in STATES:
            for path in sorted((root / state).iterdir()):
                if path.name.startswith(".") or path.name.endswith((".part", ".record")):
                    continue
                name = path.name.partition(":")[0] if state == "cur" else path.name
                standing = Standing(state, path, path.read_bytes(), path.stat().st_ino)
                self.jobs.setdefault(name, []).append(standing)
        # For the data of each job, by its name.
        self.lengths = {path.name.removesuffix(".part"): path.stat().st_size for path in (root / "partial").glob("*.part")}

    def payloads(self) -> Iterator[tuple[str, Path]]:
        for directory, _, names in os.walk(self.root / "files"):
            for name in names:
                path = Path(directory, name)
                yield str(path.relative_to(self.root / "files")), path

    def state(self, name: str) -> str | None:
        standings = self.jobs.get(name)
        return standings[0].state if standings else None


def after_cut(spool: Spool, jobs: Jobs, promises: Promises) -> Iterator[str]:
    """Returns the problems with invariants 1 to 4, and with what was reported to be durable."""
    yield from one_state_each(spool, jobs, promises)
    yield from whole_payloads(spool, jobs)
    for name in sorted(promises.done):
        if (state := spool.state(name)) != "done":
            yield f"{name}: was said to be done, but is in {state}"
    for name, standings in spool.jobs.items():
        if (job := jobs.all.get(name)) and standings[0].state not in ("done", "failed"):
            yield from earned_data(spool, job, standings[0], promises)


def one_state_each(spool: Spool, jobs: Jobs, promises: Promises) -> Iterator[str]:
    for name in sorted(promises.dropped):
        standings = spool.jobs.get(name, [])
        # A move by link and unlink that was interrupted between the two can be completed.
        if len({standing.inode for standing in standings}) != 1:
            yield f"{name}: is in {[standing.state for standing in standings]}"
    for name, standings in spool.jobs.items():
        if name not in promises.begun:
            yield f"{name}: was never dropped"
        for standing in standings:
            if f"/{name}\n".encode() not in standing.text:
                yield f"{name}: its text is lost: {standing.text[:60]!r} in {standing.state}"


def whole_payloads(spool: Spool, jobs: Jobs) -> Iterator[str]:
    by_output = {job.output: job for job in jobs.all.values()}
    there: set[str] = set()
    for output, path in spool.payloads():
        job = by_output.get(output)
        # A crash may leave one of these beside the file that it was to replace (INTERNALS.md).
        if job is None and path.name.startswith(".spoolrun-"):
            continue
        if job is None:
            yield f"files/{output}: no job asks for it"
            continue
        there.add(job.name)
        content = path.read_bytes()
        if content == job.before and spool.state(job.name) != "done":
            continue
        if content not in job.versions:
            yield f"files/{output}: wrong: {describe(content, job)}; its job is in {spool.state(job.name)}"
    for name, standings in spool.jobs.items():
        if standings[0].state != "done" or name not in jobs.all:
            continue
        if name not in there:
            yield f"{name}: done, but there is no payload"
        if not (is_journaled(standings[0].text, b"verified") and is_journaled(standings[0].text, b"done")):
            yield f"{name}: done, but there is no receipt"


def earned_data(spool: Spool, job: Job, standing: Standing, promises: Promises) -> Iterator[str]:
    """Checks that the data below the last checkpoint is right, and that the reported checkpoint exists."""
    mark = standing.checkpoint()
    offset, checksum = mark or (0, 0)
    if job.name != CHANGED and offset < promises.checkpoints.get(job.name, 0):
        yield f"{job.name}: the checkpoint at {promises.checkpoints[job.name]} is lost; there is one at {offset}"
    data = spool.root / "partial" / f"{job.name}.part"
    # Verified data is linked before its first name is removed.
    if mark is None or not data.exists() or is_journaled(standing.text, b"verified"):
        return
    if job.name == CHANGED and data.stat().st_size < offset:
        return
    head = data.read_bytes()[:offset]
    if zlib.crc32(head) != checksum or not any(version.startswith(head) for version in job.versions):
        yield f"{job.name}: the data below its checkpoint at {offset} is wrong: {describe(head, job)}"


def temporaries(spool: Spool) -> Iterator[str]:
    """What a cut alone never leaves in the output root; an error may leave it (INTERNALS.md)."""
    for output, path in spool.payloads():
        if path.name.startswith(".spoolrun-"):
            yield f"left behind: files/{output}"


def unearned_tail(spool: Spool, name: str) -> bytes:
    """The data beyond the last checkpoint."""
    standings = spool.jobs.get(name)
    offset, _ = (standings[0].checkpoint() if standings else None) or (0, 0)
    path = spool.root / "partial" / f"{name}.part"
    return path.read_bytes()[offset:] if spool.lengths.get(name, 0) > offset else b""


def describe(content: bytes, job: Job) -> str:
    zeros = len(content) - len(content.rstrip(b"\0"))
    return f"{len(content)} bytes of {len(job.versions[0]) if job.versions else 0}, {zeros} zeros at the end"


def resumed_at_checkpoint(before: Spool, events: list[dict[str, str]]) -> Iterator[str]:
    """Checks that each job resumes at its last checkpoint after a cut: the data beyond it was not earned."""
    seen: set[str] = set()
    for event in events:
        name = event.get("job", "")
        if event["event"] != "started" or name in seen or name not in before.jobs:
            continue
        seen.add(name)
        offset, _ = before.jobs[name][0].checkpoint() or (0, 0)
        # The second cut came after the data of the older version was removed, and before a line recorded that.
        if name == CHANGED and before.lengths.get(name, 0) < offset:
            offset = 0
        if int(event["at"]) != offset:
            yield f"{name}: resumes at {event['at']}, but its last checkpoint is at {offset}"


def at_end(spool: Spool, jobs: Jobs, promises: Promises) -> Iterator[str]:
    """Returns the problems after all due jobs were run."""
    yield from one_state_each(spool, jobs, promises)
    yield from whole_payloads(spool, jobs)
    for name in sorted(spool.jobs):
        wanted = "failed" if name in jobs.all and jobs.all[name].has_to_fail else "done"
        if spool.state(name) != wanted:
            yield f"{name}: is in {spool.state(name)} at the end"
    for path in [*(spool.root / "cur").iterdir(), *(spool.root / "partial").iterdir()]:
        yield f"left behind: {path.parent.name}/{path.name}"
