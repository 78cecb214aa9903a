"""Runs jobs against a server that answers at random, by programs that a seed draws. What is in done/ afterwards must be
exactly one version of one resource, or something that no client can detect. Ends with 1 unless that is so, no job is
lost, and all jobs are done once the server is honest. `make random`."""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import plants
from batch import OTHER_BOOT, Batch, Finding, Tally
from minimise import describe, exchange, minimise
from server import Server
from trial import BATCH, Trial, draw

# A file system in memory, if there is one: durability is not tested here.
MEMORY = Path("/dev/shm")
# The number of findings after which it ends; and how many of each kind are reduced.
ENOUGH = 40
MOST_LINES, MOST_COLUMNS = 60, 400
# How often a trial that fails in a batch is tried alone.
TRIES = 3


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="random", description=__doc__)
    parser.add_argument("--program", type=Path, help="the spoolrun to try")
    parser.add_argument("--trials", type=int, default=2000, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="the first trial has this times a million; default: %(default)s")
    parser.add_argument("--parallel", type=int, default=8, help="batches at a time in each process; default: %(default)s")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default: one for each processor")
    parser.add_argument("--trial", type=int, help="run only this trial, and show it")
    parser.add_argument("--self-test", action="store_true", help="build the program with mistakes, and see whether each is found")
    options = parser.parse_args()
    # For the self-test: whether findings are shown, and the kinds of which one is enough.
    options.shows, options.until = True, set()
    if options.program is None and not options.self_test:
        parser.error("--program is missing")
    return options


class Rig:
    """Runs batches on one server."""

    def __init__(self, program: Path, server: Server, work: Path, can_reboot: bool):
        self.program = program
        self.server = server
        self.work = work
        self.can_reboot = can_reboot
        self.count = 0

    async def play(self, trials: list[Trial]) -> Batch:
        self.count += 1
        batch = Batch(self.program, self.server, self.work / f"batch{self.count}", trials, self.can_reboot)
        try:
            await batch.play()
        finally:
            batch.remove()
        return batch

    async def fails_alone(self, finding: Finding) -> bool:
        for _ in range(TRIES):
            batch = await self.play([finding.trial])
            if any(other.kind == finding.kind for other in batch.findings):
                return True
        return False

    async def fail(self, trials: list[Trial], kind: str) -> list[bool]:
        """Which of them fail."""
        batches: dict[tuple[int, int], list[Trial]] = {}
        for trial in trials:
            batches.setdefault((trial.chunk_size, trial.workers), []).append(trial)
        bad: set[int] = set()
        for company in batches.values():
            batch = await self.play(company)
            bad |= {id(finding.trial) for finding in batch.findings if finding.kind == kind}
        return [id(trial) in bad for trial in trials]

    async def show(self, finding: Finding) -> None:
        """Prints a finding, reduced as far as possible; in one piece, because the processes share the output."""
        lines = [f"{finding.kind}, trial {finding.trial.seed}: {finding.text}"]
        if not await self.fails_alone(finding):
            begin = finding.trial.seed // BATCH * BATCH
            lines.append(f"  only in the company of trials {begin} to {begin + BATCH - 1}, by chance; what went over the wire:")
            print("\n".join([*lines, *indented([*describe(finding.trial), *exchange(finding.log)]), ""]), flush=True)
            return
        small = await minimise(finding.trial, lambda trials: self.fail(trials, finding.kind))
        batch = await self.play([small])
        lines += indented([*describe(small), *exchange(batch.log_of(small))])
        lines += [f"  {other.kind}: {other.text}" for other in batch.findings]
        print("\n".join([*lines, ""]), flush=True)


def indented(lines: list[str]) -> list[str]:
    return ["    " + line[:MOST_COLUMNS] for line in lines[:MOST_LINES]]


@contextmanager
def workplace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="random-", dir=MEMORY if MEMORY.is_dir() else None) as work:
        yield Path(work).resolve()


def can_reboot(work: Path) -> bool:
    """Whether another boot id can be shown to the program."""
    boot = work / "boot"
    boot.write_text("0\n")
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", OTHER_BOOT, "sh", boot, "true"]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


async def play_all(options: argparse.Namespace, work: Path, first: int, number: int) -> tuple[Tally, list[Finding]]:
    """Runs this process' share of the batches."""
    tally, found = Tally(), []
    numbers = iter(range(first + number * BATCH, first + options.trials, options.processes * BATCH))
    async with Server(work) as server:
        rig = Rig(options.program, server, work, can_reboot(work))

        async def go_on() -> None:
            for begin in numbers:
                batch = await rig.play([draw(seed) for seed in range(begin, min(begin + BATCH, first + options.trials))])
                tally.add(batch.tally)
                found.extend(batch.findings)
                if len(found) >= ENOUGH or any(finding.kind in options.until for finding in found):
                    return

        await asyncio.gather(*(go_on() for _ in range(options.parallel)))
        shown = set()
        for finding in found if options.shows else ():
            if finding.kind not in shown:
                shown.add(finding.kind)
                await rig.show(finding)
        for finding in found if options.shows else ():
            print(f"{finding.kind}: trial {finding.trial.seed}: {finding.text}")
    return tally, found


def share(options: argparse.Namespace, first: int, number: int, result: int) -> None:
    """Runs one process, which writes its numbers to the descriptor."""
    with workplace() as work:
        tally, found = asyncio.run(play_all(options, work, first, number))
    with open(result, "w") as file:
        json.dump([tally.trials, tally.classes, tally.events, Counter(finding.kind for finding in found)], file)


def play(options: argparse.Namespace) -> tuple[Tally, Counter[str]]:
    """Runs everything, in as many processes as there are processors. Returns what was tried, and the number of findings
    by kind."""
    # A multiple of a batch, because what the trials of a batch share follows from their seeds.
    first = options.seed * 1_000_000
    children = []
    for number in range(options.processes):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(reading)
                share(options, first, number, writing)
                status = 0
            finally:
                sys.stdout.flush()
                os._exit(status)
        os.close(writing)
        children.append((child, reading))
    total, findings = Tally(), Counter()
    for child, reading in children:
        with open(reading) as file:
            said = file.read()
        if os.waitpid(child, 0)[1] != 0:
            raise SystemExit("random: a process of the rig has failed")
        trials, classes, events, found = json.loads(said)
        total.add(Tally(trials, Counter(classes), Counter(events)))
        findings += found
    return total, findings


async def play_one(options: argparse.Namespace) -> int:
    with workplace() as work:
        async with Server(work) as server:
            trial = draw(options.trial)
            rig = Rig(options.program, server, work, can_reboot(work))
            batch = await rig.play([trial])
            for line in [*describe(trial), *exchange(batch.log_of(trial))]:
                print(line)
            for kind in sorted({finding.kind for finding in batch.findings}):
                await rig.show(next(finding for finding in batch.findings if finding.kind == kind))
            print(f"{len(batch.findings)} findings, {dict(batch.tally.classes)}")
            return 1 if batch.findings else 0


def main() -> int:
    options = arguments()
    # The worker uses no proxy for the loopback.
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        os.environ.pop(name, None)
    if options.self_test:
        return plants.self_test(options, play)
    options.program = options.program.resolve()
    if options.trial is not None:
        return asyncio.run(play_one(options))
    began = time.monotonic()
    total, findings = play(options)
    seconds = time.monotonic() - began
    for what, count in sorted((total.classes + total.events).items()):
        print(f"{count:7}  {what}")
    if not total.events["power cut"]:
        print("random: no power cuts, because only root can show another boot id")
    print(f"{total.trials} trials from seed {options.seed}: {findings.total()} findings; {total.trials / seconds:.0f} a second")
    return 1 if findings else 0


if __name__ == "__main__":
    # So that processes that were started are ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
