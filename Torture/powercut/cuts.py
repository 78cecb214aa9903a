"""Power cuts: while a worker runs, its disk is copied at instants; each copy is what a cut at that instant would have left."""

import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import checks
from checks import Spool
from disks import Kind, Store, fsync_file, run
from jobs import LARGE_JOBS, Dropper, Jobs, Promises
from server import AFTER
from worker import Worker

# Seconds; a machine may be slow.
LIMIT = 120
# Images of cuts with problems that are kept for a look at them.
KEPT = 3


@dataclass
class Outcome:
    """Of many cuts."""

    cuts: int = 0
    # Cuts that left jobs in each of the states; that had files longer than was earned; and problems by cut.
    states: dict[str, int] = field(default_factory=dict)
    unearned: int = 0
    problems: dict[str, list[str]] = field(default_factory=dict)

    def add(self, label: str, problems: list[str]) -> None:
        self.cuts += 1
        if problems:
            self.problems[label] = problems


@dataclass
class Cut:
    image: Path
    promises: Promises
    label: str


@dataclass
class Rig:
    program: Path
    store: Store
    jobs: Jobs
    work: Path
    # For a worker that is to be broken: see sabotage.c.
    preload: dict[str, str] = field(default_factory=dict)
    # Whether the run after a cut is told that it is the same boot.
    hides_reboot: bool = False

    def log(self, image: Path) -> Path:
        return self.work / f"{image.name}.log"

    def start(self, spool: Path, image: Path, reboot: bool = False) -> Worker:
        return Worker(self.program, spool, self.log(image), reboot and not self.hides_reboot, self.preload)


def new_spool(rig: Rig, point: Path) -> Path:
    spool = point / "spool"
    run(rig.program, "init", spool)
    rig.jobs.prepare(spool)
    # To make the spool's own name durable is not what is tried here.
    run("sync", "-f", spool)
    return spool


def record(rig: Rig, kind: Kind, interval: float) -> Iterator[Cut]:
    """Runs a worker to its end, and copies its disk about every `interval` seconds, and when it has ended."""
    image = rig.store.make(kind)
    promises = Promises()
    seconds = 11.0
    with rig.store.mounted(image, kind) as point:
        spool = new_spool(rig, point)
        dropper = Dropper(rig.program, spool, rig.jobs, promises, seconds / max(1, len(rig.jobs.small)))
        for number in range(LARGE_JOBS):
            dropper.drop(rig.jobs.all[f"large-{number}"])
        worker = rig.start(spool, image)
        dropper.start()
        # In half of the runs, not too late for a checkpoint that comes after it.
        restart = time.monotonic() + random.uniform(1, 2 * seconds)
        deadline = time.monotonic() + LIMIT
        try:
            while worker.is_running() and time.monotonic() < deadline:
                time.sleep(random.uniform(0, 2 * interval))
                # Before the copy, so that all of it was promised before the cut.
                yield take(rig, image, worker, promises, "during")
                if time.monotonic() > restart:
                    restart = deadline
                    worker.restart()
        finally:
            dropper.stop()
        if worker.wait(LIMIT) is None:
            raise RuntimeError(f"the worker on {kind.name} does not end: {rig.log(image)}")
        # A directory that was not synced shows here alone, where nothing came after it.
        yield take(rig, image, worker, promises, "after")
    image.unlink()
    if dropper.errors:
        raise RuntimeError(f"{dropper.errors[0]}")


def take(rig: Rig, image: Path, worker: Worker, promises: Promises, label: str) -> Cut:
    said = promises.copy()
    worker.add_promises(said)
    copy = rig.store.copy(image)
    # A drop that began meanwhile may be in the copy.
    said.begun |= promises.begun
    return Cut(copy, said, f"{copy.name} ({label} {image.name})")


def examine(rig: Rig, kind: Kind, cut: Cut, outcome: Outcome, again: bool) -> None:
    """Checks what the cut left, lets a worker go on from there, and checks its end. With `again` that run is cut, too."""
    second: Cut | None = None
    kept = rig.store.copy(cut.image)
    with rig.store.mounted(cut.image, kind) as point:
        before = Spool(point / "spool")
        note(before, outcome)
        problems = list(checks.after_cut(before, rig.jobs, cut.promises))
        fsync_file(before.root / "defaults", AFTER)
        worker = rig.start(before.root, cut.image, reboot=True)
        if again:
            time.sleep(random.uniform(0, 0.3))
            second = take(rig, cut.image, worker, cut.promises, "again")
        status = worker.wait(LIMIT)
        problems += checks.resumed_at_checkpoint(before, worker.events())
        # Data of a job that is done may have its temporary name yet, where the file system kept no order; a worker leaves it for 36 hours.
        run(rig.program, "clean", before.root)
        end = Spool(before.root)
        problems += checks.at_end(end, rig.jobs, cut.promises)
        failed = any(rig.jobs.all[name].has_to_fail for name in end.jobs if name in rig.jobs.all)
        said = [event for event in worker.events() if event["event"] == "printed"]
        if status not in ((0, 1) if failed else (0,)) or said:
            problems.append(f"the next run ended with {status}: {said}")
    outcome.add(cut.label, problems)
    if problems and len(outcome.problems) <= KEPT:
        shutil.copy(rig.log(cut.image), rig.work / f"failed-{cut.image.name}.log")
        # Reflinks end at the file system's border.
        run("cp", "--sparse=always", kept, rig.work / f"failed-{cut.image.name}.image")
    if second is not None:
        examine(rig, kind, second, outcome, again=False)
    kept.unlink()
    cut.image.unlink()
    rig.log(cut.image).unlink()


def note(spool: Spool, outcome: Outcome) -> None:
    for state in {standings[0].state for standings in spool.jobs.values()}:
        outcome.states[state] = outcome.states.get(state, 0) + 1
    for path in (spool.root / "partial").glob("large-*.part"):
        standings = spool.jobs.get(path.name.removesuffix(".part"))
        mark = standings[0].checkpoint() if standings else None
        if path.stat().st_size > (mark[0] if mark else 0):
            outcome.unearned += 1
            return


def power_cuts(rig: Rig, kind: Kind, wanted: int, interval: float) -> Outcome:
    """At least `wanted` cuts, of as many runs as it takes."""
    outcome = Outcome()
    while outcome.cuts < wanted:
        # All copies are made before the first is examined: that a disk is busy with them must not slow the run down.
        for number, one in enumerate(list(record(rig, kind, interval))):
            examine(rig, kind, one, outcome, again=number % 2 == 0)
    return outcome
