"""How the cost grows with the work. These are single runs: only the shape of the curve counts."""

import dataclasses
import os
import subprocess
import time

from clients import Clients
from measuring import Failed, alternate, settle
from row import Bench, Result
from scratch import AS_IT_IS, Scratch
from single import GIB, sized
from waiting import MIB, run_for

# One file of ext4 can have 65,000 names (EXT4_LINK_MAX).
NAMES_OF_A_FILE = 50_000


def growth_jobs(bench: Bench) -> Result:
    """On the file system of the run, and on XFS beside it."""
    result = Result("Growth: jobs waiting, 4 KiB each, 16 at once")
    result.table = [["file system", "jobs waiting", "to the first payload, s", "jobs/s", "peak RSS, MiB"]]

    def measure(bench: Bench) -> None:
        for exponent in range(2, bench.size(7, 6)):
            first, rate, peak = run_for(bench, 10**exponent, 20)
            figures = [f"{first:.3f}", f"{rate:,.0f}", f"{peak / MIB:.1f}"]
            result.table.append([bench.scratch.kind, f"{10**exponent:,}", *figures])

    measure(bench)
    if bench.scratch.kind not in (AS_IT_IS, "xfs"):
        with Scratch(bench.scratch.at.with_name("bench-xfs"), "xfs") as other:
            measure(dataclasses.replace(bench, scratch=other, clients=Clients(bench.program, other)))
    return result


def growth_receipts(bench: Bench) -> Result:
    """Many names of few files stand for the receipts, because what grows is the directory."""
    jobs = bench.size(10_000, 2_000)
    title = f"Growth: names in done/ before a run of {jobs:,} jobs of 4 KiB, 16 at once"
    result = Result(f"{title}; each {NAMES_OF_A_FILE:,} are of one file")
    result.table = [["names in done/", "wall, s", "jobs/s", "peak RSS, MiB", "`status`, s"]]
    spool = bench.clients.spool
    for count in (0, *(10**exponent for exponent in range(4, bench.size(8, 6)))):
        bench.clients.drop([f"{bench.server.http}/many/{number:07}" for number in range(jobs)])
        for number in range(count):
            name = spool / "done" / f"old-{number:08}"
            if number % NAMES_OF_A_FILE == 0:
                receipt = name
                receipt.write_text(f"{bench.server.http}/old\ndone: 2026-01-01T00:00:00Z bytes=0\n")
            else:
                os.link(receipt, name)
        settle()
        run = bench.runner.measure([bench.program, "--once", "--jobs", "16", "--per-host", "16", str(spool)])
        bench.clients.expect_done(count + jobs)
        status = bench.runner.measure([bench.program, "status", str(spool)])
        figures = [f"{run.wall:.3f}", f"{jobs / run.wall:,.0f}", f"{run.rss / MIB:.1f}", f"{status.wall:.2f}"]
        result.table.append([f"{count:,}", *figures])
    return result


def growth_sizes(bench: Bench) -> Result:
    """The served files are sparse, because 16 GiB of random bytes would not stay in the page cache."""
    result = Result("Growth: size of one file")
    result.table = [["size", "wall, s", "MB/s", "CPU, s", "peak RSS, MiB"]]
    size = 1 << 10
    while size <= bench.size(16 * GIB, GIB):
        source = bench.server.add_sparse("growing", size)
        ours = bench.clients.spoolrun([f"{bench.server.http}/growing"], [])
        series = alternate(bench.runner, [ours], 3 if size < GIB else 1)["spoolrun"]
        source.unlink()
        if series.failure:
            raise Failed(series.failure)
        figures = [f"{series.wall:.3f}", f"{size / series.wall / 1e6:,.1f}", f"{series.median('cpu'):.3f}"]
        result.table.append([sized(size), *figures, f"{series.median('rss') / MIB:.1f}"])
        size *= 16
    return result


def growth_connections(bench: Bench) -> Result:
    result = Result("Growth: transfers at once, each limited by the server to 20 MiB/s")
    result.table = [["transfers at once", "wall, s", "MB/s", "CPU, s", "peak RSS, MiB"]]
    size = bench.size(64 * MIB, 16 * MIB)
    count = 32
    for number in range(count):
        bench.server.add_sparse(f"part-{number}", size)
    urls = [f"{bench.server.http}/slow/part-{number}" for number in range(count)]
    parallel = 1
    while parallel <= count:
        # As many files as take the same time, for each number of parallel downloads.
        ours = bench.clients.spoolrun(urls[:parallel], [], "--jobs", str(parallel), "--per-host", str(parallel))
        series = alternate(bench.runner, [ours], 1)["spoolrun"]
        if series.failure:
            raise Failed(series.failure)
        rate = size * parallel / series.wall / 1e6
        figures = [f"{series.wall:.3f}", f"{rate:,.0f}", f"{series.median('cpu'):.3f}"]
        result.table.append([str(parallel), *figures, f"{series.median('rss') / MIB:.1f}"])
        parallel *= 2
    for number in range(count):
        (bench.server.www / f"part-{number}").unlink()
    return result


def growth_workers(bench: Bench) -> Result:
    """Runs several workers on one spool, which do not know of each other."""
    jobs = bench.size(10_000, 2_000)
    result = Result(f"Growth: workers on one spool, {jobs:,} jobs of 4 KiB, each worker with 16 at once")
    result.table = [["workers", "wall, s", "jobs/s"]]
    for workers in (1, 2, 3, 4):
        bench.clients.drop([f"{bench.server.http}/many/{number:07}" for number in range(jobs)])
        settle()
        command = [bench.program, "--once", "--jobs", "16", "--per-host", "16", bench.clients.spool]
        begin = time.perf_counter()
        started = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(workers)]
        codes = [one.wait() for one in started]
        wall = time.perf_counter() - begin
        done = sum(1 for _ in (bench.clients.spool / "done").iterdir())
        if done != jobs or any(codes):
            raise Failed(f"{workers} workers ended with {codes}, and {done} of {jobs} jobs are done")
        result.table.append([str(workers), f"{wall:.3f}", f"{jobs / wall:,.0f}"])
    return result
