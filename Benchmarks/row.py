"""What a row of the benchmark is: its figures, and the goals that they are held against."""

from dataclasses import dataclass, field
from pathlib import Path

from clients import Clients
from measuring import Failed, Runner, Series
from scratch import Scratch
from server import Server


@dataclass
class Goal:
    """A figure beside what it should be. `measured` is None where there was nothing to measure."""

    text: str
    measured: float | None
    limit: float
    unit: str = "×"
    # Whether the figure should be at least the limit, not at most.
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        if self.measured is None:
            return False
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


@dataclass
class Result:
    """What came of a row. `rates` makes a column of how many units a second each candidate did: (unit, count)."""

    title: str
    series: dict[str, Series] = field(default_factory=dict)
    goals: list[Goal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rates: tuple[str, float] | None = None
    # A table of its own: the header, then the rows.
    table: list[list[str]] = field(default_factory=list)

    def ratio(self, of: str, to: str, what: str = "wall") -> float | None:
        """Of two candidates' medians; None if one of them failed."""
        one, other = self.series[of], self.series[to]
        if not one.costs or not other.costs or one.failure or other.failure:
            return None
        return one.median(what) / other.median(what)

    def fastest(self, names: list[str]) -> str:
        """The candidate with the shortest median among those that did not fail."""
        sound = [name for name in names if self.series[name].costs and not self.series[name].failure]
        if not sound:
            raise Failed("none of " + ", ".join(names) + " did it")
        return min(sound, key=lambda name: self.series[name].wall)


@dataclass
class Bench:
    """What all rows share."""

    program: Path
    scratch: Scratch
    server: Server
    clients: Clients
    runner: Runner
    runs: int
    quick: bool

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full
