"""Rows of servers that set limits: does a client keep to them, and does it get everything all the same? `make
bench-servers` writes SERVERS.md.

All clients of a row run at the same time, each with a server of its own: these rows wait, they do not compute.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from clients import ARIA2, CURL, WGET2
from distance import Way, relay
from measuring import Failed, alternate
from quotas import Account, Behaviour, Quotas, dead_server
from row import Bench, Goal, Result

OURS = "spoolrun"
# As many attempts as a job of spoolrun has, and ten seconds between two.
ATTEMPTS = 12


@dataclass
class Client:
    """A client with a directory of its own."""

    name: str
    place: Path
    commands: list[list[str]]
    processes: list[subprocess.Popen]
    base: str = ""

    def done(self, size: int) -> int:
        """How many files are whole."""
        place = self.place / ("spool/done" if self.name == OURS else "out")
        if self.name == OURS:
            return len(os.listdir(place))
        return sum(entry.stat().st_size == size and not entry.name.endswith(".aria2") for entry in os.scandir(place))

    def received(self) -> int:
        """Bytes in all of its files."""
        return sum(os.stat(f"{directory}/{file}").st_size for directory, _, files in os.walk(self.place) for file in files if file.endswith((".bin", ".part")))

    def lost(self) -> int:
        """Attempts that jobs of spoolrun have lost."""
        failures = 0
        for state in ("partial", "failed", "done"):
            for entry in os.scandir(self.place / "spool" / state):
                if not entry.name.endswith(".part"):
                    lines = re.findall(r"^failed: .*", Path(entry.path).read_text(), re.MULTILINE)
                    failures += sum("burned=no" not in line for line in lines)
        return failures

    def start(self, environment: dict[str, str]) -> None:
        with open(self.place / "log", "ab") as log:
            for command in self.commands:
                self.processes.append(
                    subprocess.Popen(command, cwd=self.place, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                )

    @property
    def has_ended(self) -> bool:
        return all(process.poll() is not None for process in self.processes)

    def stop(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def client(bench: Bench, name: str, urls: list[str], options: list[str], runs: int = 1, defaults: str = "") -> Client:
    """`runs`: how many processes. The others get a part of the URLs each, because they share no list."""
    place = bench.scratch.fresh(f"servers-{name}")
    if name == OURS:
        spool = place / "spool"
        subprocess.run([bench.program, "init", spool], check=True, stdout=subprocess.DEVNULL)
        (spool / "defaults").write_text(defaults)
        for number, url in enumerate(urls):
            (spool / "new" / f"job-{number:05}").write_text(f"{url}\n")
        return Client(name, place, [[str(bench.program), *options, str(spool)]] * runs, [])
    (place / "out").mkdir()
    commands = []
    for run in range(runs):
        part, listed = urls[run::runs], place / f"urls{run}"
        listed.write_text("".join(f"{url}\n" for url in part))
        if name == "curl":
            listed.write_text("".join(f'url = "{url}"\noutput = "out/{url.rsplit("/")[-1]}"\n' for url in part))
            commands.append([*CURL, *options, "--config", str(listed)])
        elif name == "wget2":
            commands.append([*WGET2, *options, "--directory-prefix=out", f"--input-file={listed}"])
        else:
            commands.append([*ARIA2, *options, "--dir=out", f"--input-file={listed}"])
    return Client(name, place, commands, [])


def names(count: int) -> list[str]:
    return [f"{number:05}.bin" for number in range(count)]


def play(
    bench: Bench, behaviour: Behaviour, count: int, options: dict[str, list[str]], seconds: float, runs: int = 1,
    defaults: str = "", others: Callable[[str], list[str]] = lambda _: [], until: Callable[[Client, Account], bool] | None = None,
) -> dict[str, tuple[Client, Account, float]]:
    """Lets all clients run for some seconds, or until each has ended; `others`: more URLs of a client.

    Returns their accounts and the seconds that they took.
    """
    found: dict[str, tuple[Client, Account, float]] = {}
    environment = bench.runner.environment
    with ExitStack() as stack:
        playing: list[tuple[Client, Quotas]] = []
        for name, chosen in options.items():
            server = stack.enter_context(Quotas(behaviour))
            urls = [f"{server.base}/{one}" for one in names(count)] + others(name)
            playing.append((client(bench, name, urls, chosen, runs, defaults), server))
        begun = time.perf_counter()
        try:
            for one, _ in playing:
                one.start(environment)
            ends = dict.fromkeys(options, seconds)
            left = list(playing)
            while left and (now := time.perf_counter() - begun) < seconds:
                for one, server in list(left):
                    if one.has_ended or until is not None and until(one, server.account):
                        ends[one.name] = now
                        left.remove((one, server))
                time.sleep(0.05)
            for one, server in playing:
                found[one.name] = (one, server.account, ends[one.name])
        finally:
            for one, _ in playing:
                one.stop()
    return found


def percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0


def quota(bench: Bench) -> Result:
    seconds, count = bench.size(100, 40), bench.size(2000, 800)
    tries = str(ATTEMPTS)
    found = play(
        bench, Behaviour(quota=100), count,
        {
            OURS: [],
            "curl": ["--parallel", "--parallel-immediate", "--parallel-max", "4", "--no-progress-meter", "--retry", tries],
            "wget2": ["--max-threads=4", f"--tries={tries}", "--waitretry=10"],
            "aria2c": ["--max-concurrent-downloads=4", f"--max-tries={tries}", "--retry-wait=10"],
        },
        seconds,
    )
    result = Result(f"{count:,} jobs for {seconds} s; the server allows 100 requests in 10 s, and says 429 and Retry-After to others")
    result.table = [["", "requests", "answers 429", "share", "done", "ended after"]]
    for name, (one, account, took) in found.items():
        asked = len(account.asked)
        ended = "–" if took >= seconds else f"{took:.0f} s"
        share = percent(account.refused, asked)
        result.table.append([name, f"{asked:,}", f"{account.refused:,}", f"{share:.1f} %", f"{one.done(4096):,}", ended])
    one, account, _ = found[OURS]
    result.goals = [
        Goal("files done", one.done(4096), 0.9 * 10 * seconds, "", at_least=True),
        Goal("answers 429", percent(account.refused, len(account.asked)), 3, "%"),
        Goal("attempts lost", one.lost(), 0, ""),
    ]
    return result


def away(bench: Bench) -> Result:
    """The clients run alone first, to know their rates."""
    dead, live, seconds = bench.size(500, 50), bench.size(1000, 500), 90
    options = {
        OURS: ["--once"],
        "curl": ["--parallel", "--parallel-immediate", "--parallel-max", "16", "--no-progress-meter", "--connect-timeout", "30"],
        "wget2": ["--max-threads=16", "--connect-timeout=30", "--tries=1"],
        "aria2c": ["--max-concurrent-downloads=16", "--connect-timeout=30", "--max-tries=1"],
    }
    behaviour = Behaviour(delay=0.05)

    def has_all(_: Client, account: Account) -> bool:
        return len(account.ended) >= live

    with dead_server() as base:
        away = [f"{base}/away-{one}" for one in names(dead)]
        alone = play(bench, behaviour, live, options, seconds, until=has_all)
        # One after another in the list: half of the dead come first.
        found = play(bench, behaviour, live, options, seconds, others=lambda _: away)
    result = Result(f"{live:,} jobs of a server that answers after 50 ms, and {dead} of one that takes no connection, `--once`")
    result.table = [["", "files a second, alone", "beside the dead server", "ended after", "exit status"]]
    for name, (one, account, took) in found.items():
        status = "stopped" if took >= seconds else str(one.processes[0].returncode)
        rates = [account.rate for account in (alone[name][1], account)]
        result.table.append([name, *(f"{rate:.0f}" for rate in rates), f"{took:.0f} s" if took < seconds else f"> {seconds} s", status])
    one, account, took = found[OURS]
    result.goals = [
        Goal("rate beside the dead server", percent(account.rate, alone[OURS][1].rate), 95, "%", at_least=True),
        Goal("end of the run", took, 32, "s"),
        Goal("exit status", one.processes[0].returncode, 75, "", at_least=True),
        Goal("attempts lost", one.lost(), 0, ""),
    ]
    return result


def one_of_ten(bench: Bench) -> Result:
    """Each tool has its own nine servers, and lists the files of the ten in turn, as mirrors of a project are listed."""
    each, seconds = bench.size(60, 20), 60
    options = {
        OURS: ["--once"],
        "curl": ["--parallel", "--no-progress-meter"],
        "wget2": [],
        "aria2c": [],
    }
    result = Result(f"{each} files of each of ten servers that answer after 50 ms; one takes no connection; each tool as it comes")
    result.table = [["", "the last file of the nine is there after", "ended after", "exit status"]]
    last: dict[str, float] = {}
    with dead_server() as away:
        for name, chosen in options.items():
            with ExitStack() as stack:
                living = [stack.enter_context(Quotas(Behaviour(delay=0.05))) for _ in range(9)]
                bases = [away, *(one.base for one in living)]
                urls = [f"{base}/{place}-{number}.bin" for number in range(each) for place, base in enumerate(bases)]
                one = client(bench, name, urls, chosen)
                begun = time.perf_counter()
                one.start(bench.runner.environment)
                while not one.has_ended and time.perf_counter() - begun < seconds:
                    time.sleep(0.05)
                took = time.perf_counter() - begun
                status = str(one.processes[0].returncode) if one.has_ended else "stopped"
                one.stop()
                whole = all(len(server.account.ended) >= each for server in living)
                last[name] = max(server.account.ended[-1] for server in living) - begun if whole else seconds
                there = f"{last[name]:.1f} s" if whole else f"not within {seconds} s"
                result.table.append([name, there, f"{took:.0f} s" if status != "stopped" else f"> {seconds} s", status])
    best = min((name for name in last if name != OURS), key=last.get)
    result.goals = [Goal(f"the last file of the nine, beside {best}", last[OURS] / last[best], 1.0)]
    return result


def together(bench: Bench) -> Result:
    seconds, runs, size = bench.size(20, 12), 4, 64 << 20
    found = play(
        bench, Behaviour(size=size), 64,
        {
            OURS: ["--once", "--per-host", "4", "--limit-rate", "500k"],
            "curl": ["--parallel", "--parallel-immediate", "--parallel-max", "4", "--no-progress-meter", "--limit-rate", "125k"],
            "wget2": ["--max-threads=4", "--limit-rate=500k"],
            "aria2c": ["--max-concurrent-downloads=4", "--max-overall-download-limit=500k"],
        },
        seconds, runs,
    )
    result = Result(f"{runs} runs at once, each told to fetch at most 4 files at a time and 500 kB/s, for {seconds} s")
    result.table = [["", "transfers at once", "bytes a second"]]
    for name, (one, account, _) in found.items():
        result.table.append([name, str(account.most), f"{one.received() / seconds:,.0f}"])
    one, account, _ = found[OURS]
    result.goals = [
        Goal("transfers at once", account.most, 4, ""),
        Goal("rate", one.received() / seconds / 1000, 525, "kB/s"),
        Goal("rate", one.received() / seconds / 1000, 450, "kB/s", at_least=True),
    ]
    result.notes.append("curl has no limit for all of its transfers, so each has a quarter.")
    return result


def pace(bench: Bench) -> Result:
    count, interval = bench.size(40, 16), 0.5
    found = play(
        bench, Behaviour(), count,
        {OURS: ["--once"], "curl": ["--rate", "120/m"], "wget2": ["--max-threads=1", "--wait=0.5"]},
        3 * count * interval + 10, 2, "pace@127.0.0.1: 120/min\n",
    )
    result = Result(f"{count} jobs of a server that may be asked 120 times a minute, by 2 runs at once")
    result.table = [["", "requests", "shortest pause", "time"]]
    for name, (_, account, _) in found.items():
        result.table.append([name, str(len(account.asked)), f"{account.shortest_pause * 1000:.0f} ms", f"{account.span:.1f} s"])
    one, account, _ = found[OURS]
    result.goals = [
        Goal("shortest pause", account.shortest_pause * 1000, 0.95 * 1000 * interval, "ms", at_least=True),
        Goal("time beside what the pace allows", account.span / ((count - 1) * interval), 1.1),
        Goal("files done", one.done(4096), count, "", at_least=True),
    ]
    result.notes.append("aria2c has no option for this.")
    return result


def defaults(bench: Bench) -> Result:
    """No tool is told how many files to fetch at a time."""
    count, way = bench.size(300, 100), Way(50, 5)
    sources = bench.server.add_files("tree-defaults", count, 100_000)
    result = Result(f"{count} files of 100 kB, each tool as it comes; {way}", rates=("files/s", count))
    with relay(bench, way) as base:
        base = f"{base}/{sources[0].parent.name}"
        ours = bench.clients.spoolrun([f"{base}/{source.name}" for source in sources], sources)
        others = bench.clients.many(base, [source.name for source in sources], sources, None)
        candidates = [ours, *(one for one in others if one.name in ("wget2", "aria2c"))]
        result.series = alternate(bench.runner, candidates, bench.runs)
    try:
        best = result.fastest(["wget2", "aria2c"])
    except Failed:
        return result
    result.goals = [Goal(f"the fastest other, {best}", result.ratio(OURS, best), 1.0)]
    result.notes.append("curl fetches one file at a time, or with -Z up to 50, whatever the server says.")
    return result
