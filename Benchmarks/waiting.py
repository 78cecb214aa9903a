"""The row with a million waiting jobs."""

import os
import signal
import time
from pathlib import Path

from measuring import Failed, Series, resident_peak, settle, stop, wait_until
from row import Bench, Goal, Result

MIB = 1 << 20
OPTIONS = ["--jobs", "16", "--per-host", "16"]


def is_empty(directory: Path) -> bool:
    """Reads only the start of the directory, because reading a million names takes time."""
    with os.scandir(directory) as entries:
        return not any(True for _ in entries)


def run_for(bench: Bench, jobs: int, seconds: float, *extra: str) -> tuple[float, float, int]:
    """Starts a watching worker on `jobs` waiting jobs, and stops it after this number of seconds, or when all are done.

    Returns the seconds until the first payload is published, the jobs per second from then on, and the peak resident
    set.
    """
    bench.clients.drop([f"{bench.server.http}/many/{number:07}" for number in range(jobs)])
    settle()
    spool = bench.clients.spool
    begin = time.perf_counter()
    process = bench.runner.spawn([str(bench.program), *OPTIONS, *extra, str(spool)])
    try:
        first = wait_until(lambda: not is_empty(spool / "files"), 300, "the first payload")

        def is_over() -> bool:
            if time.perf_counter() - first >= seconds:
                return True
            return is_empty(spool / "new") and is_empty(spool / "cur")

        end = wait_until(is_over, seconds + 60, "the end", pause=0.02)
        done = len(os.listdir(spool / "done"))
        peak = resident_peak(process)
    finally:
        stop(process, signal.SIGTERM)
    if done < min(jobs, 100):
        raise Failed(f"only {done} jobs in {seconds} s: {bench.runner.said()}")
    return first - begin, done / (end - first), peak


def million(bench: Bench) -> Result:
    jobs = bench.size(1_000_000, 100_000)
    few = 10_000
    seconds = bench.size(20, 5)
    _, rate_of_few, _ = run_for(bench, few, seconds)
    first, rate, peak = run_for(bench, jobs, seconds)
    bench.clients.drop([f"{bench.server.http}/many/{number:07}" for number in range(jobs)])
    settle()
    status = [bench.runner.measure([str(bench.program), "status", str(bench.clients.spool)]) for _ in range(3)]
    result = Result(f"{jobs:,} jobs waiting")
    name = f"status of {jobs:,} jobs"
    result.series[name] = Series([str(bench.program), "status", str(bench.clients.spool)], status)
    result.goals = [
        Goal("from the start to the first payload in its place", first, 1.0, "s"),
        Goal("peak resident set of the worker", peak / MIB, 60, "MiB"),
        Goal(f"jobs/s, compared with {few:,} waiting", rate / rate_of_few, 0.9, at_least=True),
        Goal("`status`", result.series[name].wall, 2.0, "s"),
    ]
    result.notes.append(
        f"{rate:,.0f} jobs/s in the first {seconds} s with {jobs:,} waiting, {rate_of_few:,.0f} with {few:,}."
    )
    return result


