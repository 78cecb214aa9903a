"""Checks a spool when all jobs are done: none lost, none done twice, the right bytes, a receipt for each."""

import re
from collections import Counter
from pathlib import Path

from worker import Worker


def job_of(name: str) -> str:
    """Where a sleeping worker of the same host has a job's data locked, it continues as `NAME~2`."""
    return re.sub(r"~[1-9][0-9]*$", "", name)


def some(found: list[str]) -> str:
    return f"{len(found)}, such as {', '.join(found[:3])}"


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def problems(spool: Path, jobs: dict[str, bytes], workers: list[Worker]) -> list[str]:
    """`jobs`: the bytes that each wants."""
    found = []
    receipts = Counter(job_of(name) for name in names(spool / "done") if name != "archive")
    if lost := [job for job in sorted(jobs) if not receipts[job]]:
        found.append(f"not done: {some(lost)}")
    if twice := [job for job, times in sorted(receipts.items()) if times > 1]:
        found.append(f"done twice: {some(twice)}")
    if strangers := [job for job in sorted(receipts) if job not in jobs]:
        found.append(f"nobody's receipts: {some(strangers)}")
    for state in ("new", "urgent", "cur", "partial", "failed"):
        # FUSE keeps what a host that was lost had open and removed.
        if left := [name for name in names(spool / state) if not name.startswith(".fuse_hidden")]:
            found.append(f"left in {state}: {some(left)}")
    payloads = names(spool / "files")
    if wrong := [name for name in payloads if jobs.get(name) != (spool / "files" / name).read_bytes()]:
        found.append(f"wrong bytes: {some(wrong)}")
    if missing := [job for job in sorted(jobs) if job not in set(payloads)]:
        found.append(f"no payload: {some(missing)}")
    published = Counter(job_of(event.job) for worker in workers for event in worker.look() if event.what == "done")
    if often := [job for job, times in sorted(published.items()) if times > 1]:
        found.append(f"published twice: {some(often)}")
    for name in names(spool / "done"):
        if name != "archive":
            found += receipt_problems(spool / "done" / name, jobs.get(job_of(name), b""))
    return found


def receipt_problems(file: Path, content: bytes) -> list[str]:
    text = file.read_bytes()
    ends = [line for line in text.splitlines() if line.startswith(b"done: ")]
    if not text.endswith(b"\n") or len(ends) != 1 or b"\0" in text:
        return [f"{file.name}: its receipt is damaged"]
    if f"size={len(content)} ".encode() not in text:
        return [f"{file.name}: its receipt has another size"]
    return []
