"""Rows of many small files."""

import subprocess
from pathlib import Path

from clients import CAREFUL
from measuring import Candidate, alternate
from row import Bench, Goal, Result
from single import disk, sized

PARALLEL = 16

# The number of threads of floor.c.
FLOORS = {"the spool's system calls alone, 1 thread": 1, "the same, 2 threads": 2}


def floors(bench: Bench, urls: list[str], size: int) -> list[Candidate]:
    """The cost of the protocol without a network: no worker that follows it can be faster."""
    program = bench.scratch.root / "floor"
    source = Path(__file__).parent / "floor.c"
    subprocess.run(["cc", "-O2", "-pthread", "-o", str(program), str(source)], check=True)
    clients = bench.clients
    return [
        Candidate(
            name,
            [str(program), str(clients.spool), str(size), str(threads)],
            lambda: clients.drop(urls),
            lambda _: clients.expect_done(len(urls)),
        )
        for name, threads in FLOORS.items()
    ]


def fetch_many(bench: Bench, count: int, size: int, of_curl: float, of_wget2: float, of_careful: float) -> Result:
    sources = bench.server.add_files(f"tree-{size}", count, size)
    names = [source.name for source in sources]
    base = f"{bench.server.http}/tree-{size}"
    options = ["--jobs", str(PARALLEL), "--per-host", str(PARALLEL)]
    urls = [f"{base}/{name}" for name in names]
    ours = bench.clients.spoolrun(urls, sources, *options)
    others = bench.clients.many(base, names, sources, PARALLEL)
    result = Result(f"{count:,} files of {sized(size)}, {PARALLEL} at once", rates=("files/s", count))
    result.series = alternate(bench.runner, [ours, *others, *floors(bench, urls, size), disk(bench, count * size)], bench.runs)
    result.goals = [
        Goal("curl -Z", result.ratio("spoolrun", "curl -Z"), of_curl),
        Goal("wget2", result.ratio("spoolrun", "wget2"), of_wget2),
        Goal(CAREFUL, result.ratio("spoolrun", CAREFUL), of_careful),
    ]
    fastest = result.fastest([other.name for other in others])
    floor = result.fastest(list(FLOORS))
    share = result.ratio(floor, fastest)
    result.notes.append(
        "spoolrun makes each file, its name and its receipt durable. The system calls that this takes, in batches that share "
        f"their flushes, with bytes from nowhere (floor.c), take {share:.2f} × as long as {fastest}."
    )
    return result


def small(bench: Bench) -> Result:
    result = fetch_many(bench, bench.size(10_000, 2_000), 4096, 4.5, 2.2, 3.2)
    result.goals.append(Goal("aria2c (rate)", result.ratio("aria2c", "spoolrun"), 5, at_least=True))
    ours = result.series["spoolrun"]
    busy = None if ours.failure else ours.median("machine") * 10_000 / bench.size(10_000, 2_000)
    result.goals.append(Goal("CPU of the whole machine for 10,000 jobs", busy, 3.2, "s"))
    return result


def medium(bench: Bench) -> Result:
    return fetch_many(bench, bench.size(2_000, 400), 256 << 10, 1.4, 1.0, 0.8)
