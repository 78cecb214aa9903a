"""Cuts the power: while a worker runs, its disk is copied at random instants. Each copy is what a cut at that instant
would have left."""

import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import checks
from checks import Spool
from disks import Kind, Store, fsync_file, run
from jobs import LARGE_JOBS, Dropper, Jobs, Promises
from server import AFTER
from worker import Worker, read_events

# Seconds; a machine may be slow.
LIMIT = 120
# About how long the large jobs take.
RUN_TIME = 11.0
# Runs of a few jobs, one after the other in one spool: cut after the jobs were dropped, and after the worker has ended.
STOPS = 6
JOBS_BEFORE_STOP = [1, 1, 2, 3, 6]
# The number of images with problems that are kept for inspection.
KEPT = 3


@dataclass
class Outcome:
    """The results of many cuts."""

    cuts: int = 0
    # Cuts that left jobs in each state; cuts that left unearned data, and such that ends in zeros, with the largest
    # length of these; and problems by cut.
    states: dict[str, int] = field(default_factory=dict)
    unearned: int = 0
    zeroed: int = 0
    most_zeros: int = 0
    problems: dict[str, list[str]] = field(default_factory=dict)
    # Promises before the cuts, in total.
    checkpoints: int = 0
    done: int = 0
    # How the run ended.
    said: str = ""

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
    # For a worker that is broken on purpose: see sabotage.c.
    preload: dict[str, str] = field(default_factory=dict)
    # Whether the run after a cut is told that the boot is the same.
    hides_reboot: bool = False

    def log(self, image: Path) -> Path:
        return self.work / f"{image.name}.log"

    def start(self, spool: Path, image: Path, reboot: bool = False) -> Worker:
        return Worker(self.program, spool, self.log(image), reboot and not self.hides_reboot, self.preload)


def new_spool(program: Path, jobs: Jobs, point: Path) -> Path:
    spool = point / "spool"
    run(program, "init", spool)
    jobs.prepare(spool)
    # Making the spool's own name durable is not tested here.
    run("sync", "-f", spool)
    return spool


def record(rig: Rig, kind: Kind, interval: float) -> Iterator[Cut]:
    """Runs a worker to its end, and copies its disk about every `interval` seconds, and at its end."""
    image = rig.store.make(kind)
    promises = Promises()
    with rig.store.mounted(image, kind) as point:
        spool = new_spool(rig.program, rig.jobs, point)
        dropper = Dropper(rig.program, spool, rig.jobs, promises, rig.preload)
        for _ in moments(dropper, lambda: rig.start(spool, image), interval):
            yield take(rig, image, promises, "during")
        yield take(rig, image, promises, "after")
    demand_silence(rig.log(image))
    image.unlink()


def moments(dropper: Dropper, start: Callable[[], Worker], interval: float) -> Iterator[None]:
    """Runs a worker to its end while jobs are dropped; yields about every `interval` seconds meanwhile."""
    for number in range(LARGE_JOBS):
        dropper.drop(dropper.jobs.all[f"large-{number}"])
    worker = start()
    dropper.start(RUN_TIME / max(1, len(dropper.jobs.small)))
    # In half of the runs, early enough for a checkpoint after it.
    restart = time.monotonic() + random.uniform(1, 2 * RUN_TIME)
    deadline = time.monotonic() + LIMIT
    try:
        while worker.is_running() and time.monotonic() < deadline:
            time.sleep(random.uniform(0, 2 * interval))
            yield
            if time.monotonic() > restart:
                restart = deadline
                worker.restart()
    finally:
        dropper.stop()
        status = worker.wait(LIMIT)
    if dropper.errors:
        raise RuntimeError(f"{dropper.errors[0]}")
    demand_good_end(worker, status)


def record_stops(rig: Rig, kind: Kind) -> Iterator[Cut]:
    """Runs a worker for a few jobs at a time, and copies its disk while nothing runs."""
    image = rig.store.make(kind)
    promises = Promises()
    with rig.store.mounted(image, kind) as point:
        spool = new_spool(rig.program, rig.jobs, point)
        dropper = Dropper(rig.program, spool, rig.jobs, promises, rig.preload)
        rig.log(image).touch()
        for _ in stops(dropper, lambda: rig.start(spool, image)):
            yield take(rig, image, promises, "idle")
    demand_silence(rig.log(image))
    image.unlink()


def stops(dropper: Dropper, start: Callable[[], Worker]) -> Iterator[None]:
    """Yields after jobs were dropped, and after a worker has run them: a directory that was not flushed shows only if
    no later write takes its entry along."""
    rest = random.sample(dropper.jobs.small, len(dropper.jobs.small))
    for _ in range(STOPS):
        count = random.choice(JOBS_BEFORE_STOP)
        for job in rest[:count]:
            if not dropper.drop(job):
                raise RuntimeError(f"{dropper.errors[0]}")
        rest = rest[count:]
        yield
        worker = start()
        demand_good_end(worker, worker.wait(LIMIT))
        yield


def demand_good_end(worker: Worker, status: int | None) -> None:
    """Raises if the worker crashed: then it would be cut at its beginning only. 1: a job failed, as some have to."""
    if status not in (0, 1):
        raise RuntimeError(f"the worker ended with {status} before any cut: {worker.log}")


def demand_silence(log: Path) -> None:
    """Raises if the worker printed anything except events."""
    if said := [event["text"] for event in read_events(log) if event["event"] == "printed"]:
        raise RuntimeError(f"the worker said before any cut: {said[:3]}: {log}")


def take(rig: Rig, image: Path, promises: Promises, label: str) -> Cut:
    # Before the copy, so that all of it was promised before the cut.
    said = promises.copy()
    said.add_log(read_events(rig.log(image)))
    copy = rig.store.copy(image)
    # A drop that began meanwhile may be in the copy.
    said.begun |= promises.begun
    return Cut(copy, said, f"{copy.name} ({label} {image.name})")


def examine(rig: Rig, kind: Kind, cut: Cut, outcome: Outcome, again: bool) -> None:
    """Checks what the cut left, runs a worker from there, and checks its end. With `again` that run is cut, too."""
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
            second = take(rig, cut.image, cut.promises, "again")
        status = worker.wait(LIMIT)
        problems += checks.resumed_at_checkpoint(before, worker.events())
        # Data of a job that is done may still have its temporary name if the file system kept no order. A worker leaves
        # it for 36 hours.
        run(rig.program, "clean", before.root)
        end = Spool(before.root)
        problems += checks.at_end(end, rig.jobs, cut.promises)
        problems += checks.temporaries(end)
        failed = any(rig.jobs.all[name].has_to_fail for name in end.jobs if name in rig.jobs.all)
        said = [event for event in worker.events() if event["event"] == "printed"]
        if status not in ((0, 1) if failed else (0,)) or said:
            problems.append(f"the next run ended with {status}: {said}")
    outcome.add(cut.label, problems)
    if problems and len(outcome.problems) <= KEPT:
        shutil.copy(rig.log(cut.image), rig.work / f"failed-{cut.image.name}.log")
        # Reflinks work within one file system only.
        run("cp", "--sparse=always", kept, rig.work / f"failed-{cut.image.name}.image")
        (rig.work / f"failed-{cut.image.name}.problems").write_text("\n".join([cut.label, *problems, ""]))
    if second is not None:
        examine(rig, kind, second, outcome, again=False)
    kept.unlink()
    cut.image.unlink()
    rig.log(cut.image).unlink()


def note(spool: Spool, outcome: Outcome) -> None:
    for state in {standings[0].state for standings in spool.jobs.values()}:
        outcome.states[state] = outcome.states.get(state, 0) + 1
    tails = [checks.unearned_tail(spool, f"large-{number}") for number in range(LARGE_JOBS)]
    zeros = max(len(tail) - len(tail.rstrip(b"\0")) for tail in tails)
    outcome.unearned += any(tails)
    # Random bytes may end in a few zeros.
    outcome.zeroed += zeros > 16
    outcome.most_zeros = max(outcome.most_zeros, zeros)


def power_cuts(rig: Rig, kind: Kind, wanted: int, interval: float) -> Outcome:
    """Makes at least `wanted` cuts, with as many runs as that takes: a busy machine may have no checkpoint in one."""
    outcome = Outcome()
    while outcome.cuts < wanted or outcome.cuts < 4 * wanted and not (outcome.checkpoints and outcome.done):
        # All copies are made before the first is examined, because a busy disk would slow the run down.
        for number, one in enumerate([*record(rig, kind, interval), *record_stops(rig, kind)]):
            outcome.checkpoints += len(one.promises.checkpoints)
            outcome.done += len(one.promises.done)
            examine(rig, kind, one, outcome, again=number % 2 == 0)
    if not outcome.checkpoints or not outcome.done:
        outcome.problems["all"] = [f"no cut came after a checkpoint and none after a job was done: {outcome.checkpoints}, {outcome.done}"]
    return outcome
