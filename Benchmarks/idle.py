"""Rows without any work."""

import signal
import time

from measuring import Candidate, alternate, cpu_time, resident_peak, settle, stop
from row import Bench, Goal, Result

MIB = 1 << 20


def idle_once(bench: Bench) -> Result:
    runs = bench.size(101, 51)
    bench.clients.drop([])
    ours = Candidate("spoolrun", [str(bench.program), "--once", str(bench.clients.spool)], direct=True)
    curl = Candidate("curl --version", ["curl", "--version"], direct=True)
    result = Result(f"`--once` on an empty spool, {runs} runs")
    result.series = alternate(bench.runner, [ours, curl], runs)
    peak = result.series["spoolrun"].median("rss") if result.series["spoolrun"].costs else None
    result.goals = [
        Goal("curl --version", result.ratio("spoolrun", "curl --version"), 1.0),
        Goal("peak resident set", None if peak is None else peak / MIB, 14, "MiB"),
    ]
    return result


def idle_watch(bench: Bench) -> Result:
    """Reads the CPU time ten times a second. CPU time that comes more than a second after the last counts as a new
    wake-up."""
    done = bench.size(100_000, 10_000)
    seconds = bench.size(600, 135)
    bench.clients.drop([])
    for number in range(done):
        (bench.clients.spool / "done" / f"job-{number:07}").write_text("http://127.0.0.1/x\n")
    settle()
    process = bench.runner.spawn([str(bench.program), str(bench.clients.spool)])
    try:
        # The start has its own cost, which is not measured here.
        time.sleep(5)
        wakeups: list[list[float]] = []
        before = cpu_time(process)
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            time.sleep(0.1)
            used = cpu_time(process)
            if used > before:
                if not wakeups or now - wakeups[-1][0] > 1:
                    wakeups.append([now, 0])
                wakeups[-1][1] += used - before
            before = used
        peak = resident_peak(process)
    finally:
        stop(process, signal.SIGTERM)
    result = Result(f"Watching a spool with {done:,} done jobs for {seconds} s")
    longest = max((used for _, used in wakeups), default=0)
    total = sum(used for _, used in wakeups)
    rescans = seconds // 60 + 1
    besides = sum(sorted((used for _, used in wakeups), reverse=True)[rescans:])
    result.goals = [
        Goal("CPU of the dearest rescan", longest * 1000, 50, "ms"),
        Goal(f"CPU of all but the {rescans} rescans", besides * 1000, seconds / 60, "ms"),
    ]
    result.notes.append(
        f"{len(wakeups)} wake-ups and {total * 1000:.1f} ms of CPU time in all. What happens to the machine's network "
        f"interfaces wakes it, too. Peak resident set: {peak / MIB:.1f} MiB."
    )
    return result
