"""Runs a command and measures its cost; runs several in turn, so that a noisy machine affects all of them."""

import os
import signal
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cpu import machine_time

# A run that takes longer hangs.
TIME_LIMIT = 1800


class Failed(Exception):
    """A command that failed: it has no figures."""


@dataclass
class Cost:
    """The cost of one run: seconds of wall clock and of CPU, peak resident set in bytes. `machine`: seconds of CPU of
    all processes and the kernel meanwhile, the server among them."""

    wall: float
    cpu: float
    rss: int
    machine: float = 0


@dataclass
class Candidate:
    """One of the compared tools: what it runs, what is prepared before a run, and what is checked after it."""

    name: str
    command: list[str]
    prepare: Callable[[], None] = lambda: None
    # Called with True after the first run, to check every byte.
    check: Callable[[bool], None] = lambda thorough: None
    # Without GNU time, for commands that take only milliseconds; the resident set is then measured in separate runs.
    direct: bool = False


@dataclass
class Series:
    """The runs of one candidate."""

    command: list[str]
    costs: list[Cost] = field(default_factory=list)
    failure: str | None = None

    def median(self, what: str) -> float:
        return statistics.median(getattr(cost, what) for cost in self.costs)

    @property
    def wall(self) -> float:
        return self.median("wall")

    @property
    def spread(self) -> tuple[float, float]:
        walls = [cost.wall for cost in self.costs]
        return min(walls), max(walls)


class Runner:
    """Starts commands with an environment in which no file of the user affects them."""

    def __init__(self, home: Path):
        self.log = home / "output"
        self.rss_file = home / "rss"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}

    def spawn(self, command: list[str]) -> int:
        """Starts it in its own process group, with its output in a file. Returns its process id."""
        null = (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)
        output = (os.POSIX_SPAWN_OPEN, 1, str(self.log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        actions = [null, output, (os.POSIX_SPAWN_DUP2, 1, 2)]
        return os.posix_spawnp(command[0], command, self.environment, file_actions=actions, setpgroup=0)

    def said(self) -> str:
        """The last lines that the last command printed."""
        return self.log.read_text(errors="replace")[-400:].strip()

    def measure(self, command: list[str], direct: bool = False) -> Cost:
        """Runs it to its end.

        The resident set that wait4(2) reports of a child is at least that of its parent when it was started (exec(2)
        keeps the maximum), and Python's is larger than curl's. So GNU time, which is small, starts it.
        """
        between = [] if direct else ["time", "--quiet", "--format=%M", f"--output={self.rss_file}"]
        busy = machine_time()
        start = time.perf_counter()
        process = self.spawn(between + command)
        guard = threading.Timer(TIME_LIMIT, os.killpg, (process, signal.SIGKILL))
        guard.start()
        try:
            _, status, usage = os.wait4(process, 0)
        except BaseException:
            os.killpg(process, signal.SIGKILL)
            raise
        finally:
            guard.cancel()
        wall = time.perf_counter() - start
        busy = machine_time() - busy
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            raise Failed(f"{command[0]} ended with {code}: {self.said()}")
        rss = 0 if direct else int(self.rss_file.read_text()) * 1024
        return Cost(wall, usage.ru_utime + usage.ru_stime, rss, busy)


def settle() -> None:
    """Writes the last run's dirty pages to the disk, so that they are not written during the next run."""
    os.sync()


def alternate(runner: Runner, candidates: list[Candidate], runs: int) -> dict[str, Series]:
    """Runs A B C, C B A, A B C …: a disturbance affects all of them, and no tool always runs after the same one, whose
    use of memory and disk may affect it. A tool that fails is left out from then on."""
    series = {candidate.name: Series(candidate.command) for candidate in candidates}
    for number in range(runs):
        for candidate in candidates if number % 2 == 0 else reversed(candidates):
            one = series[candidate.name]
            if one.failure is not None:
                continue
            try:
                candidate.prepare()
                settle()
                cost = runner.measure(candidate.command, candidate.direct)
                candidate.check(number == 0)
                one.costs.append(cost)
            except Failed as failure:
                one.failure = str(failure)
    for candidate in candidates:
        if candidate.direct and series[candidate.name].failure is None:
            candidate.prepare()
            peak = max(runner.measure(candidate.command).rss for _ in range(3))
            for cost in series[candidate.name].costs:
                cost.rss = peak
    return series


def resident_peak(process: int) -> int:
    """Peak resident set of a running process, in bytes (proc(5), VmHWM)."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise Failed(f"process {process} has ended")


def cpu_time(process: int) -> float:
    """Seconds on a CPU of all threads that a process has now, to the nanosecond (proc(5), schedstat)."""
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 1e9


def wait_until(condition: Callable[[], bool], seconds: float, what: str, pause: float = 0.0005) -> float:
    """Waits for the condition; returns the time, by perf_counter, at which it was true."""
    end = time.perf_counter() + seconds
    while not condition():
        if time.perf_counter() > end:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(pause)
    return time.perf_counter()


def stop(process: int, number: int) -> None:
    """Sends a signal to a child process and waits for its end."""
    os.kill(process, number)
    os.waitpid(process, 0)
