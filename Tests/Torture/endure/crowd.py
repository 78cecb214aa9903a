"""Runs many workers of two hosts on one spool. They are killed, stopped past their lease and replaced at random, while
the files on the server change. Ends with 1 unless each job is done once, with one version of its file. `make torture`
runs it."""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from fleet import Fleet, Host, Mounts, Worker, can_mount, claims, make_old
from rig import options_parser, workplace
from server import Server
from verdict import Witness, problems

# Seconds without a finished job after which something hangs: a worker that keeps running looks at other workers' claims
# once a minute.
PATIENCE = 200


def arguments() -> argparse.Namespace:
    parser = options_parser("crowd", __doc__, seed="draws the order of faults; their moments remain chance")
    parser.add_argument("--jobs", type=int, default=10_000, help="default: %(default)s")
    parser.add_argument("--workers", type=int, default=8, help="at a time; default: %(default)s")
    parser.add_argument("--pause", type=float, default=0.15, help="seconds between faults on average; default: %(default)s")
    parser.add_argument(
        "--locks", choices=["shared", "apart"], default="shared", help="apart: hosts that don't see each other's (root, bindfs)"
    )
    return parser.parse_args()


class Crowd:
    def __init__(self, options: argparse.Namespace, spool: Path, fleet: Fleet, server: Server, chance: random.Random):
        self.options = options
        self.spool = spool
        self.fleet = fleet
        self.server = server
        self.chance = chance
        # By fault: how often it happened, how many jobs were claimed then, how many of them another worker took before
        # the owner woke up.
        self.cases: Counter[str] = Counter()
        self.in_hand: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()
        self.asleep: list[tuple[float, Worker, list[str]]] = []
        self.jobs = [f"job{number:05}" for number in range(options.jobs)]
        self.fixed: set[str] = set()
        self.undropped: list[str] = []

    # MARK: jobs

    def prepare(self) -> None:
        for job in self.jobs:
            small, large = self.chance.randrange(1, 8192), self.chance.randrange(1 << 15, 1 << 17)
            content = self.server.add(job, self.chance.choice([small, large]))
            if self.chance.random() < 0.3:
                self.fixed.add(job)
                self.drop(job, f"size: {len(content)}\ncrc32: {zlib.crc32(content):08X}\n")
            elif self.chance.random() < 0.5:
                self.drop(job)
            else:
                self.undropped.append(job)

    def drop(self, job: str, lines: str = "") -> None:
        # No attempt may be the last one: the rig tests what faults do to jobs that can be done.
        file = self.spool / "tmp" / job
        file.write_text(f"url: {self.server.url(job)}\noutput: {job}\nattempts: 1000\n{lines}")
        file.rename(self.spool / "new" / job)

    def done(self) -> int:
        return len(os.listdir(self.spool / "done"))

    # MARK: faults

    def kill(self) -> None:
        worker = self.chance.choice(self.fleet.workers)
        self.count("SIGKILL", worker)
        self.fleet.signal(worker, signal.SIGKILL)
        left = claims(self.spool, worker)
        # Otherwise only workers of its own host may take over.
        if self.chance.random() < 0.5:
            make_old(self.spool, left)

    def terminate(self) -> None:
        if awake := self.fleet.awake():
            worker = self.chance.choice(awake)
            self.count("SIGTERM", worker)
            self.fleet.signal(worker, signal.SIGTERM)

    def stop(self) -> None:
        awake = self.fleet.awake()
        # One worker has to be left to take over.
        if len(awake) > self.options.workers // 2:
            worker = self.chance.choice(awake)
            self.fleet.signal(worker, signal.SIGSTOP)
            self.count("SIGSTOP past the lease, SIGCONT", worker)
            held = claims(self.spool, worker)
            make_old(self.spool, held)
            self.asleep.append((time.monotonic() + self.chance.uniform(0.2, 5), worker, held))

    def wake(self, now: float) -> None:
        for item in [item for item in self.asleep if item[0] <= now or item[1].process.poll() is not None]:
            self.asleep.remove(item)
            _, worker, held = item
            if worker.process.poll() is None:
                self.taken["SIGSTOP past the lease, SIGCONT"] += len(set(held) - set(os.listdir(self.spool / "cur")))
                self.fleet.signal(worker, signal.SIGCONT)

    def change(self) -> None:
        waiting = set(self.jobs) - self.fixed - set(os.listdir(self.spool / "done"))
        running = {name.partition(":")[0] for name in os.listdir(self.spool / "cur")} & waiting
        chosen = self.sample(running, 8) + self.sample(waiting, 8)
        for job in chosen:
            self.server.change(job)
        self.cases["another version of a file"] += len(chosen)

    def sample(self, found: set[str], most: int) -> list[str]:
        return self.chance.sample(sorted(found), min(most, len(found)))

    def restart(self) -> None:
        self.cases["server stopped and started"] += 1
        self.server.stop()
        time.sleep(self.chance.uniform(0, 0.3))
        self.server.start()

    def drop_some(self) -> None:
        for _ in range(min(len(self.undropped), max(1, self.options.jobs // 50))):
            self.drop(self.undropped.pop())

    def count(self, fault: str, worker: Worker) -> None:
        self.cases[fault] += 1
        self.in_hand[fault] += len(claims(self.spool, worker))

    # MARK: the run

    def run(self) -> None:
        """Makes faults until nearly all jobs are done; the rest run undisturbed."""
        faults = [self.kill, self.stop, self.change, self.drop_some, self.terminate, self.restart]
        weights = [10, 4, 5, 4, 2, 0.5]
        best, since, touched = -1, time.monotonic(), 0.0
        while not self.is_over():
            now = time.monotonic()
            self.wake(now)
            self.fleet.refill()
            if self.done() < 0.95 * self.options.jobs:
                self.chance.choices(faults, weights)[0]()
            else:
                while self.undropped:
                    self.drop_some()
                self.bury()
            if now - touched > 1:
                touched = now
                self.retry_now()
            if self.done() > best:
                best, since = self.done(), now
            if now - since > PATIENCE:
                self.fleet.problems.append(f"nothing was done for {PATIENCE} s")
                break
            time.sleep(min(self.chance.expovariate(1 / self.options.pause), 2))
        for _, worker, _ in self.asleep:
            self.fleet.signal(worker, signal.SIGCONT)
        self.fleet.end()

    def is_over(self) -> bool:
        # Jobs move meanwhile. A job that is claimed from partial/ is missed by a look in the order in which jobs move,
        # but not by one in reverse.
        states = ("new", "cur", "partial", "cur", "new")
        waiting = (name for state in states for name in os.listdir(self.spool / state))
        return not self.undropped and all(name.endswith(".part") for name in waiting)

    def retry_now(self) -> None:
        """`touch partial/x`: otherwise a job would wait for a minute or more after a fault."""
        for job in os.listdir(self.spool / "partial"):
            if not job.endswith(".part"):
                try:
                    os.utime(self.spool / "partial" / job)
                except FileNotFoundError:
                    pass  # Claimed meanwhile.

    def bury(self) -> None:
        """Makes the claims of dead workers old."""
        living = [worker.suffix for worker in self.fleet.workers]
        dead = [name for name in os.listdir(self.spool / "cur") if not any(suffix in name for suffix in living)]
        make_old(self.spool, dead)

    def report(self, found: list[str], seconds: float) -> None:
        print(f"{'fault':34} {'cases':>6}  outcome")
        for fault, cases in sorted(self.cases.items()):
            outcome = ""
            if self.in_hand[fault]:
                outcome = f"{self.in_hand[fault]} jobs in hand"
            if self.taken[fault]:
                outcome += f", {self.taken[fault]} of them another worker's when it woke up"
            print(f"{fault:34} {cases:6}  {outcome}".rstrip())
        answers = self.server.answers()
        needed = sum((self.spool / "files" / name).stat().st_size for name in os.listdir(self.spool / "files"))
        print(
            f"{self.done()} of {self.options.jobs} jobs done by {self.fleet.started} workers in {seconds:.0f} s;"
            f" {answers['206']} transfers resumed; {answers['bytes'] / max(1, needed):.2f} times the bytes; {len(found)} problems"
        )
        for problem in found[:20]:
            print("  " + problem)


def play(options: argparse.Namespace, work: Path) -> bool:
    chance = random.Random(options.seed)
    spool = work / "spool"
    subprocess.run([options.program, "init", spool], check=True)
    (work / "logs").mkdir()
    with ExitStack() as stack:
        views = [spool, spool]
        if options.locks == "apart":
            views = [work / "alpha", work / "beta"]
            stack.enter_context(Mounts(spool, views))
        hosts = [Host(name, view) for name, view in zip(("alpha", "beta"), views)]
        server = stack.enter_context(Server(work / "server", rate="32k"))
        witness = stack.enter_context(Witness(spool, work / "witness"))
        fleet = Fleet(options.program.resolve(), hosts, options.workers, work / "logs", chance)
        stack.callback(fleet.end)
        crowd = Crowd(options, spool, fleet, server, chance)
        crowd.prepare()
        begun = time.monotonic()
        crowd.run()
        # A sleeping worker keeps its locks. So a living worker loses a job only where hosts do not see each other's
        # locks. If such a job is taken once more, by a worker of the sleeper's host, which sees the lock on the data,
        # it gets another number, and no job has the data from then on.
        is_apart = options.locks == "apart"
        if is_apart:
            subprocess.run([options.program, "clean", spool], check=True, stdout=subprocess.DEVNULL)
        found = fleet.problems + problems(spool, set(crowd.jobs), server, witness, is_numbered=is_apart)
        if is_apart and not crowd.taken.total():
            found.append("no job was taken from a worker that slept: nothing can be said about that")
        crowd.report(found, time.monotonic() - begun)
    return not found


def main() -> int:
    options = arguments()
    if options.locks == "apart" and not can_mount():
        print("crowd: locks apart: left out, since it wants root, /dev/fuse and bindfs", file=sys.stderr)
        return 0
    print(f"{options.workers} workers on two hosts, locks {options.locks}, seed {options.seed}", flush=True)
    with workplace(options.keep, "crowd-") as work:
        return 0 if play(options, work) else 1


if __name__ == "__main__":
    sys.exit(main())
