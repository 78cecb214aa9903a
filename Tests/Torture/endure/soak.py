"""Runs one watching worker for an hour. Jobs are dropped, paused, retried and cancelled at random, and server and
network fail. Ends with 1 unless each job is where it belongs, each payload is right, status agrees with ls, and memory,
descriptors and threads are level. Needs root, for its own network: `make soak`."""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from faults import CHANGING, FIXED, Faults, faulty_server, make_certificates
from ledger import Ledger, output_of
from levels import FEWEST_LOOKS, Levels
from link import Link
from plants import PLANTS, planted, spoil
from rig import options_parser, workplace
from server import Server
from steering import Steering

# Seconds until all jobs must have ended once nothing fails any more: a job that was written in pieces is looked at
# every minute.
PATIENCE = 150
# The number of open jobs from which on none is dropped.
MOST_LIVING = 200
# Seconds for each mistake; the samples at rest that a verdict needs take longer in any case.
SELF_TEST_MINUTES = 0.5
HOOKS = {
    "verify": 'test ! -e "{work}/rejected/$SPOOLRUN_OUTPUT"',
    "done": 'echo "$SPOOLRUN_OUTPUT" >>"{work}/told"',
    "failed": 'echo "$SPOOLRUN_CODE" >>"{work}/failures"',
}


def arguments() -> argparse.Namespace:
    parser = options_parser("soak", __doc__, seed="draws the order of events; their moments remain chance")
    parser.add_argument("--minutes", type=float, default=60, help="default: %(default)s")
    parser.add_argument("--plant", choices=PLANTS, help="a mistake that has to be found")
    parser.add_argument("--self-test", action="store_true", help="plant each of them in turn, for a minute, and see whether it is found")
    return parser.parse_args()


class Stuck(Exception):
    """Something expected did not happen."""


class Soak:
    def __init__(self, options: argparse.Namespace, work: Path, server: Server, link: Link, worker: subprocess.Popen[bytes]):
        self.program = options.program.resolve()
        self.seconds = options.minutes * 60
        self.work = work
        self.spool = work / "spool"
        self.worker = worker
        self.server = server
        self.chance = random.Random(options.seed)
        self.ledger = Ledger(self.spool)
        self.faults = Faults(server, link, work / "rejected", self.chance)
        self.steering = Steering(self.program, self.ledger, server, self.chance)
        self.levels = Levels(worker.pid, self.seconds)
        self.problems: list[str] = []

    def run(self) -> None:
        """Alternates bad times and calm ones, in which the worker rests and is measured."""
        end = time.monotonic() + self.seconds
        try:
            while time.monotonic() < end or len(self.levels.idle) < FEWEST_LOOKS:
                self.stir(min(60, self.seconds / 10))
                self.calm()
            self.finish()
            self.calm()
        except Stuck as stuck:
            self.problems.append(str(stuck))
        finally:
            self.faults.all_over()

    def stir(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        sampled = 0.0
        while (now := time.monotonic()) < end:
            self.faults.tick()
            self.steering.go_on_writing()
            kinds = [self.drop, self.steering.steer, self.faults.strike, self.reject]
            self.chance.choices(kinds, [10, 5, 1.5, 0.2])[0]()
            if now - sampled > 2:
                sampled = now
                self.look()
                self.levels.take()
            time.sleep(min(self.chance.expovariate(20), 1))

    def drop(self) -> None:
        if self.ledger.living() < MOST_LIVING:
            self.steering.drop()

    def reject(self) -> None:
        if running := self.ledger.files("cur"):
            self.faults.reject(output_of(self.chance.choice(running)) or "none")

    def look(self) -> None:
        if self.worker.poll() is not None:
            raise Stuck(f"the worker ended with {self.worker.returncode}")

    def wait(self, condition, what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            self.look()
            if time.monotonic() > end:
                raise Stuck(f"waited {PATIENCE} s for {what}: {self.ledger.counts()}")
            time.sleep(0.05)

    def is_idle(self) -> bool:
        return not self.ledger.files("new") and not self.ledger.files("cur")

    def calm(self) -> None:
        self.steering.go_on_writing(is_last=True)
        self.faults.all_over()
        self.wait(self.come_to_rest, "rest")
        self.problems += self.status_problems()

    def come_to_rest(self) -> bool:
        """Measures the worker at rest; False if there was work meanwhile."""
        self.wait(self.is_idle, "nothing to run")
        # libcurl keeps connections. These are dead now; it checks that when it opens another, at most once a second, so
        # one may be left.
        self.server.stop()
        self.server.start()
        requests = self.server.requests()
        time.sleep(1.1)
        probe = self.steering.probe()
        self.wait((self.spool / "done" / probe.name).exists, "a probe to be done")
        # A worker returns memory that only transfers need once a pass has found nothing to do; until then its memory is
        # random. It makes a pass each minute, and when something changes in the spool's own directory.
        news = self.spool / "news"
        news.mkdir()
        news.rmdir()
        return self.levels.take_idle(lambda: self.is_idle() and self.server.requests() == requests + 1)

    def status_problems(self) -> list[str]:
        for _ in range(50):
            expected = self.ledger.counts()
            said = subprocess.run([self.program, "status", "--json", self.spool], check=True, capture_output=True).stdout
            if expected == self.ledger.counts():
                counts = json.loads(said)["jobs"]
                counts["retrying or interrupted"] = counts.pop("retrying") + counts.pop("interrupted")
                return [] if counts == expected else [f"status says {counts}, ls {expected}"]
        return ["jobs move all the time: status was not compared"]

    def finish(self) -> None:
        """Waits until all jobs that can be done are done."""
        self.faults.all_over()
        end = time.monotonic() + PATIENCE
        while not self.is_over():
            self.look()
            if time.monotonic() > end:
                raise Stuck(f"not all came to its end: {self.ledger.counts()}")
            self.steering.settle()
            time.sleep(1)

    def is_over(self) -> bool:
        failed = [self.ledger.jobs.get(output_of(path) or "") for path in self.ledger.files("failed")]
        return self.is_idle() and not self.ledger.files("partial") + self.ledger.files("hold") and all(job and job.is_hopeless for job in failed)

    def verdict(self) -> list[str]:
        """Checks the spool after the worker's end."""
        found = self.problems + self.steering.problems + self.levels.judge() + self.ledger.problems()
        told = (self.work / "told").read_text().splitlines()
        found += self.ledger.payload_problems(self.server.version_of, set(told)) + log_problems(self.work / "log")
        # The data of jobs that were cancelled by hand.
        subprocess.run([self.program, "clean", self.spool], check=True, stdout=subprocess.DEVNULL)
        found += [f"left in partial/: {path.name!r}" for path in (self.spool / "partial").iterdir()]
        return found

    def report(self, found: list[str]) -> None:
        cases = self.steering.cases + self.faults.cases
        for case, count in sorted(cases.items()):
            print(f"{count:6}  {case}")
        counts = self.ledger.counts()
        cancelled = len(self.ledger.cancelled)
        requests = self.server.requests()
        print(f"{len(self.ledger.jobs)} jobs: {counts['done']} done, {counts['failed']} failed, {cancelled} cancelled; {requests} requests")
        print(*self.levels.lines(), sep="\n")
        print(f"{len(self.levels.idle)} looks at rest; {self.levels.processor():.1f} s of processor time; {len(found)} problems")
        for problem in found[:20]:
            print("  " + problem)


def log_problems(log: Path) -> list[str]:
    """Log lines that a worker has no reason to write here."""
    problems = []
    for line in log.read_text().splitlines():
        if not line.startswith("{"):
            problems.append(f"the worker printed {line}")
        elif (event := json.loads(line))["event"] in ("broken", "barred", "spool-missing", "hook-refused"):
            problems.append(f"the log has {line}")
        elif event["level"] == "error" and event["event"] not in ("failed", "rejected"):
            problems.append(f"the log has {line}")
    return problems


def play(options: argparse.Namespace, work: Path) -> tuple[Soak, list[str]]:
    """Prints the problems, too."""
    site = work / "server"
    site.mkdir()
    (work / "rejected").mkdir()
    spool = work / "spool"
    subprocess.run([options.program, "init", spool], check=True, stdout=subprocess.DEVNULL)
    (spool / "hooks").mkdir()
    for name, command in HOOKS.items():
        (spool / "hooks" / name).write_text(f"#!/bin/sh\n{command.format(work=work)}\n")
        (spool / "hooks" / name).chmod(0o700)
    authority = make_certificates(site)
    with ExitStack() as stack:
        link = stack.enter_context(Link())
        server = stack.enter_context(faulty_server(site, link, rate="128k"))
        chance = random.Random(options.seed)
        for name in FIXED + CHANGING:
            server.add(name, chance.choice([chance.randrange(1, 8192), chance.randrange(1 << 15, 1 << 17), chance.randrange(1 << 18, 3 << 17)]))
        command = [*link.worker, options.program, "-v", "--log-format", "json", "--jobs", "8", "--per-host", "8"]
        command += ["--limit-rate", "1M", "--chunk-size", "32k", "--cacert", authority, spool]
        with open(work / "log", "wb") as log:
            worker = subprocess.Popen(command, stderr=log, env=os.environ | planted(options.plant, work))
        stack.callback(worker.kill)
        soak = Soak(options, work, server, link, worker)
        soak.run()
        spoil(options.plant, spool)
        worker.send_signal(signal.SIGTERM)
        # 1: jobs were given up during the run; 75: jobs wait.
        if (status := worker.wait(10)) not in (0, 1, 75):
            soak.problems.append(f"the worker ended with {status}")
        return soak, soak.verdict()


def self_test(options: argparse.Namespace, work: Path) -> bool:
    """Whether each mistake is found, by its effect and not by chance."""
    options.minutes = SELF_TEST_MINUTES
    missed = []
    for plant, sign in PLANTS.items():
        options.plant = plant
        place = work / plant
        place.mkdir()
        _, found = play(options, place)
        first = next((problem for problem in found if sign in problem), None)
        print("seen  " if first else "MISSED", f" {plant}: {first or found}", flush=True)
        if first is None:
            missed.append(plant)
    return not missed


def main() -> int:
    options = arguments()
    if os.geteuid() != 0:
        print("soak: left out, since only root may make a network that goes down")
        return 0
    with workplace(options.keep, "soak-") as work:
        if options.self_test:
            return 0 if self_test(options, work) else 1
        print(f"{options.minutes:g} minutes, seed {options.seed}", flush=True)
        soak, found = play(options, work)
        soak.report(found)
        return 1 if found else 0


if __name__ == "__main__":
    # So that processes that were started are ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
