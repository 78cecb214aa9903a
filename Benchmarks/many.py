"""Rows of many small files."""

from measuring import alternate
from row import Bench, Goal, Result
from single import sized

PARALLEL = 16


def fetch_many(bench: Bench, count: int, size: int, limit: float) -> Result:
    sources = bench.server.add_files(f"tree-{size}", count, size)
    names = [source.name for source in sources]
    base = f"{bench.server.http}/tree-{size}"
    options = ["--jobs", str(PARALLEL), "--per-host", str(PARALLEL)]
    ours = bench.clients.spoolrun([f"{base}/{name}" for name in names], sources, *options)
    others = bench.clients.many(base, names, sources, PARALLEL)
    result = Result(f"{count:,} files of {sized(size)}, {PARALLEL} at once", rates=("files/s", count))
    result.series = alternate(bench.runner, [ours, *others], bench.runs)
    fastest = result.fastest([other.name for other in others])
    result.goals = [Goal(f"the fastest other, {fastest}", result.ratio("spoolrun", fastest), limit)]
    result.notes.append("spoolrun makes each file, its name and its receipt durable.")
    return result


def small(bench: Bench) -> Result:
    result = fetch_many(bench, bench.size(10_000, 2_000), 4096, 1.15)
    result.goals.append(Goal("aria2c (rate)", result.ratio("aria2c", "spoolrun"), 3, at_least=True))
    return result


def medium(bench: Bench) -> Result:
    return fetch_many(bench, bench.size(2_000, 400), 256 << 10, 1.1)
