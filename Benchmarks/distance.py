"""Rows through a relay that behaves like a long way to the server (relay.c): a round trip, a limit of each connection's
rate, and connections that are cut."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measuring import Candidate, alternate
from row import Bench, Goal, Result
from single import sized

MB = 1_000_000
CONNECTIONS = 8
PARALLEL = 16


@dataclass
class Way:
    """`delay`: the round trip in milliseconds. `rate`: of a connection, in MB/s. `cuts`: per cent of the connections."""

    delay: int
    rate: int
    cuts: int = 0
    scheme: str = "http"

    def __str__(self) -> str:
        cuts = f", {self.cuts} % of the connections cut" if self.cuts else ""
        return f"{self.scheme}, {self.delay} ms, {self.rate} MB/s a connection{cuts}"


@contextmanager
def relay(bench: Bench, way: Way) -> Iterator[str]:
    """The base URL of the server at the end of the way."""
    program = bench.scratch.root / "relay"
    if not program.exists():
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, Path(__file__).parent / "relay.c"], check=True)
    port = (bench.server.https if way.scheme == "https" else bench.server.http).rsplit(":", 1)[1]
    command = [program, "127.0.0.1", port, str(way.delay), str(way.rate * MB), str(way.cuts)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield f"{way.scheme}://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.wait()


def trust(bench: Bench, way: Way) -> dict[str, list[str]]:
    return bench.clients.trust(str(bench.server.ca)) if way.scheme == "https" else {}


def one_file(bench: Bench, base: str, source: Path, way: Way) -> list[Candidate]:
    """Without wget2: with --chunk-size=4M --max-threads=8 it took as long as with one connection."""
    clients, url, options = bench.clients, f"{base}/{source.name}", trust(bench, way)
    return [
        clients.spoolrun([url], [source], "--connections", str(CONNECTIONS), *options.get("spoolrun", [])),
        clients.aria2(url, source, CONNECTIONS, *options.get("aria2c", [])),
        clients.axel(url, source, CONNECTIONS, *options.get("axel", [])),
    ]


def many_files(bench: Bench, base: str, sources: list[Path], way: Way) -> list[Candidate]:
    names = [source.name for source in sources]
    base = f"{base}/{sources[0].parent.name}"
    options = trust(bench, way)
    ours = ["--jobs", str(PARALLEL), "--per-host", str(PARALLEL), *options.get("spoolrun", [])]
    urls = [f"{base}/{name}" for name in names]
    return [bench.clients.spoolrun(urls, sources, *ours), *bench.clients.many(base, names, sources, PARALLEL, options)]


def beside_the_best(bench: Bench, result: Result, candidates: list[Candidate], limit: float) -> None:
    result.series = alternate(bench.runner, candidates, bench.runs)
    best = result.fastest([one.name for one in candidates[1:]])
    result.goals = [Goal(f"the fastest other, {best}", result.ratio("spoolrun", best), limit)]


def far_large(bench: Bench) -> Result:
    size, way = bench.size(200, 50) * MB, Way(50, 5)
    source = bench.server.add_file("far", size)
    result = Result(f"One file of {size // MB} MB, {CONNECTIONS} connections; {way}", rates=("MB/s", size / 1e6))
    with relay(bench, way) as base:
        beside_the_best(bench, result, one_file(bench, base, source, way), 1.02)
    source.unlink()
    return result


def far_small(bench: Bench) -> Result:
    count, way = bench.size(500, 100), Way(50, 5)
    sources = bench.server.add_files("tree-far", count, 100_000)
    result = Result(f"{count} files of 100 kB, {PARALLEL} at once; {way}", rates=("files/s", count))
    with relay(bench, way) as base:
        beside_the_best(bench, result, many_files(bench, base, sources, way), 1.0)
    return result


def growth(bench: Bench, title: str, ways: list[Way], candidates: Callable[[str, Way], list[Candidate]]) -> Result:
    """A table of medians: a row for each way, a column for each tool."""
    result = Result(f"Growth: {title}")
    for way in ways:
        with relay(bench, way) as base:
            series = alternate(bench.runner, candidates(base, way), min(bench.runs, 3))
        if not result.table:
            result.table = [["way", *(f"{name}, s" for name in series)]]
        result.table.append([str(way), *("failed" if one.failure else f"{one.wall:.2f}" for one in series.values())])
    return result


WAYS = [
    *(Way(delay, rate) for delay in (10, 50, 200) for rate in (1, 5, 50)),
    Way(50, 5, cuts=1), Way(50, 5, scheme="https"), Way(200, 50, scheme="https"),
]


def growth_distance_large(bench: Bench) -> Result:
    source = bench.server.add_file("far", bench.size(100, 25) * MB)
    title = f"one file of {sized(source.stat().st_size)} at a distance, {CONNECTIONS} connections"
    result = growth(bench, title, WAYS, lambda base, way: one_file(bench, base, source, way))
    source.unlink()
    return result


def growth_distance_small(bench: Bench) -> Result:
    sources = bench.server.add_files("tree-far", bench.size(500, 100), 100_000)
    title = f"{len(sources)} files of 100 kB at a distance, {PARALLEL} at once"
    return growth(bench, title, WAYS, lambda base, way: many_files(bench, base, sources, way))
