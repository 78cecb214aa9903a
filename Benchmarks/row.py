"""A row of the benchmark: its figures, and the goals for them."""

from dataclasses import dataclass, field
from pathlib import Path

from clients import Clients
from measuring import Failed, Runner, Series
from scratch import Scratch
from server import Server


@dataclass
class Goal:
    """A figure and its goal. `measured` is None if nothing could be measured."""

    text: str
    measured: float | None
    limit: float
    unit: str = "×"
    # Whether the limit is a minimum, not a maximum.
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        if self.measured is None:
            return False
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


@dataclass
class Result:
    """The results of a row. `rates` adds a column with the units per second of each tool: (unit, count)."""

    title: str
    series: dict[str, Series] = field(default_factory=dict)
    goals: list[Goal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rates: tuple[str, float] | None = None
    # An additional table: the header, then the rows.
    table: list[list[str]] = field(default_factory=list)

    def ratio(self, of: str, to: str, what: str = "wall") -> float | None:
        """The ratio of two tools' medians; None if one of them failed."""
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
    """What all rows have in common."""

    program: Path
    scratch: Scratch
    server: Server
    clients: Clients
    runner: Runner
    runs: int
    quick: bool

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full
