"""A long backlog on three hosts: what its length costs, and that nothing of it is lost when all workers are stopped in
the middle."""

import time
from pathlib import Path

from network import innermost
from scenarios import Outcome
from stage import Stage
from verdict import names
from worker import Worker

# Seconds that the workers get.
SPAN = 120
# Seconds in which their speed is measured, after the first payload and before they are stopped.
MEASURED = 30
# Adding a job takes about a millisecond.
PATIENCE = 3600


def backlog(stage: Stage, count: int) -> Outcome:
    stage.new_spool()
    host = stage.hosts[0]
    jobs = [f"job{number:07}" for number in range(count)]
    urls = host.work / "list"
    urls.write_text("".join(f"{stage.origin.same(job)}\n" for job in jobs))
    begun = time.monotonic()
    host.run(stage.program, "add", "--spool", stage.at(host), "--from", urls, timeout=PATIENCE)
    added = time.monotonic() - begun
    begun = time.monotonic()
    workers = [stage.work_on(each, "--jobs", "8") for each in stage.hosts]
    first = stage.wait("the first job done", lambda: bool(stage.done()), PATIENCE)
    speed = rate(stage)
    status = timed(stage, "status")
    time.sleep(max(0, begun + SPAN - MEASURED - time.monotonic()))
    later = rate(stage)
    peak = max(resident_peak(worker) for worker in workers)
    wrong = stage.stop_workers()
    columns = {
        "added a second": f"{count / added:.0f}",
        "first payload": f"{first:.1f} s",
        "jobs/s then": f"{speed:.0f}",
        f"after {SPAN - MEASURED} s": f"{later:.0f}",
        "status": f"{status:.1f} s",
        "memory of a worker": f"{peak / 1024:.0f} MiB",
    }
    return Outcome(f"{count} jobs waiting, 3 hosts", columns, wrong + problems(stage, jobs))


def rate(stage: Stage) -> float:
    """Jobs a second of all workers, from now on."""
    begun, before = time.monotonic(), len(stage.done())
    time.sleep(MEASURED)
    return (len(stage.done()) - before) / (time.monotonic() - begun)


def timed(stage: Stage, *command: str) -> float:
    begun = time.monotonic()
    stage.rig.run(stage.program, *command, stage.at(stage.rig), timeout=PATIENCE)
    return time.monotonic() - begun


def resident_peak(worker: Worker) -> int:
    """In KiB."""
    status = Path(f"/proc/{innermost(worker.process.pid)}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def problems(stage: Stage, jobs: list[str]) -> list[str]:
    """What is wrong with a spool of which a part is done."""
    spool = stage.at(stage.rig)
    done = names(spool / "done")
    left = [*names(spool / "new"), *(name for name in names(spool / "partial") if not name.endswith(".part"))]
    found = []
    if sorted(done + left) != jobs:
        found.append(f"{len(done)} done and {len(left)} left of {len(jobs)}")
    if names(spool / "cur") or names(spool / "failed"):
        found.append("cur or failed is not empty")
    if names(spool / "files") != done:
        found.append("the payloads are not those of the jobs that are done")
    if any((spool / "files" / name).read_bytes() != stage.origin.content_of_all for name in done):
        found.append("wrong bytes")
    return found
