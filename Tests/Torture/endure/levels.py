"""Measures what a process uses (memory, descriptors, threads, children), and whether that stays level."""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# How much more memory a worker may use in the last quarter than in the first. In a few minutes it does not meet
# everything. Code becomes resident when it is used, and is dropped at times.
MEMORY_GROWTH = {"anonymous": 0.05, "resident": 0.1}
MEMORY_SLACK = 8 << 10
LONG = 1200
# Samples at rest that a verdict needs.
FEWEST_LOOKS = 5


@dataclass
class Sample:
    # In KiB.
    resident: int
    anonymous: int
    descriptors: int
    threads: int
    # Seconds of CPU so far.
    processor: float
    zombies: set[int]


def sample(process: int) -> Sample:
    base = Path("/proc") / str(process)
    status = dict(line.split(":", 1) for line in (base / "status").read_text().splitlines())
    times = (base / "stat").read_text().rpartition(")")[2].split()
    return Sample(
        resident=int(status["VmRSS"].split()[0]),
        anonymous=int(status["RssAnon"].split()[0]),
        descriptors=len(os.listdir(base / "fd")),
        threads=int(status["Threads"]),
        processor=(int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"),
        zombies={child for child in children(process) if is_zombie(child)},
    )


def children(process: int) -> set[int]:
    """The same for all of its threads."""
    found = set()
    for task in (Path("/proc") / str(process) / "task").iterdir():
        try:
            found |= {int(child) for child in (task / "children").read_text().split()}
        except FileNotFoundError:
            pass  # The thread has ended.
    return found


def is_zombie(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Levels:
    """Samples of one worker over a time in seconds: `take` while it works, `take_idle` when it has nothing to do."""

    def __init__(self, process: int, seconds: float):
        self.process = process
        self.is_long = seconds >= LONG
        self.busy: list[Sample] = []
        self.idle: list[Sample] = []
        self.problems: list[str] = []

    def take(self) -> None:
        now = sample(self.process)
        # The worker waits for a child within 10 ms; samples are seconds apart.
        if self.busy and (left := now.zombies & self.busy[-1].zombies):
            self.problems.append(f"zombies: {sorted(left)}")
        self.busy.append(now)

    def take_idle(self, is_idle: Callable[[], bool]) -> bool:
        """The smallest of several samples, because a thread that has had nothing to do for less than a second does not
        stay. False if there was work meanwhile."""
        looks = []
        for _ in range(10):
            looks.append(sample(self.process))
            time.sleep(0.3)
        if not is_idle():
            return False
        if left := set.intersection(*(look.zombies for look in looks)):
            self.problems.append(f"zombies: {sorted(left)}")
        self.idle.append(
            Sample(
                resident=min(look.resident for look in looks),
                anonymous=min(look.anonymous for look in looks),
                descriptors=min(look.descriptors for look in looks),
                threads=min(look.threads for look in looks),
                processor=looks[-1].processor,
                zombies=set(),
            )
        )
        return True

    def judge(self) -> list[str]:
        problems = self.problems
        if len(self.idle) < FEWEST_LOOKS:
            return problems + [f"at rest {len(self.idle)} times only: nothing can be said about levels"]
        first, last = ends(self.idle)
        for what in ("descriptors", "threads"):
            before, after = median(first, what), median(last, what)
            if before != after:
                problems.append(f"idle {what}: {before} in the first quarter, {after} in the last")
        slack = 0 if self.is_long else MEMORY_SLACK
        for how, samples in [("idle", self.idle), ("busy", self.busy)][: 2 if self.is_long else 1]:
            for what, growth in MEMORY_GROWTH.items():
                before, after = (median(quarter, what) for quarter in ends(samples))
                if after > before + growth * median(samples, "resident") + slack:
                    problems.append(f"{how} {what} memory: {before} KiB in the first quarter, {after} KiB in the last")
        return problems

    def processor(self) -> float:
        return max(each.processor for each in self.busy + self.idle)

    def lines(self) -> list[str]:
        """Medians by quarter, for people."""
        if len(self.idle) < FEWEST_LOOKS:
            return []
        found = []
        for how, samples in (("idle", self.idle), ("busy", self.busy)):
            quarters = split(samples)
            for what, unit in (("resident", ", KiB"), ("anonymous", ", KiB"), ("descriptors", ""), ("threads", "")):
                values = " ".join(f"{median(quarter, what):8}" for quarter in quarters)
                found.append(f"{how} {what + unit:16} {values}")
        return found


def median(samples: list[Sample], what: str) -> int:
    return int(statistics.median(getattr(each, what) for each in samples))


def split(samples: list[Sample]) -> list[list[Sample]]:
    """The quarters, without the first eighth, in which a worker reaches its level."""
    samples = samples[len(samples) // 8 :]
    bounds = [len(samples) * quarter // 4 for quarter in range(5)]
    return [samples[begin:end] for begin, end in zip(bounds, bounds[1:])]


def ends(samples: list[Sample]) -> tuple[list[Sample], list[Sample]]:
    quarters = split(samples)
    return quarters[0], quarters[-1]
