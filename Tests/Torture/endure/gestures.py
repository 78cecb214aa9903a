"""Changes a spool at random as people and editors do, while three workers of two hosts work on it: moves between any
two directories, files saved in every way, commands, odd names, and files that are no jobs. Ends with 1 unless each
job's text is where it must be, each payload is right, and no worker has failed: `make gestures`."""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from accounts import STATES, Accounts
from commands import Commands
from fleet import PAST_LEASE, Fleet, Host, claims, make_old
from hands import Hands
from outcome import problems
from rig import options_parser, workplace
from server import Server
from stage import CHANGING, FIXED, PATIENCE
from verdict import Witness

WORKERS = 3
# Seconds (spool(5), "Dropping a job"), and one more.
SETTLING = 11
# 1: a job was given up, which such changes may lead to.
FINE = (0, 1, 75)


def arguments() -> argparse.Namespace:
    parser = options_parser("gestures", __doc__, seed="draws the order of gestures; what they meet remains chance")
    parser.add_argument("--gestures", type=int, default=100_000, help="default: %(default)s")
    parser.add_argument("--rate", type=float, default=100, help="gestures a second, if so many can be; default: %(default)s")
    return parser.parse_args()


class Gestures(Hands, Commands):
    comparisons = 0
    made = 0
    # What was done until then is checked all the same.
    is_told_to_end = False

    def end(self, *_: object) -> None:
        self.is_told_to_end = True

    def run(self, gestures: int, rate: float) -> None:
        kinds = {
            self.drop: 22, self.move: 22, self.edit: 14, self.touch: 5, self.remove: 5, self.copy: 4, self.command: 8, self.link: 2,
            self.replace: 1.5, self.glob: 2, self.thing: 3, self.take_data: 0.7, self.drop_again: 4, self.append: 1, self.change_file: 2,
            self.kill: 0.1, self.terminate: 0.1, self.look: 1,
        }
        begun = time.monotonic()
        for number in range(gestures):
            if number % 100 == 0:
                self.fleet.refill()
                self.done = self.accounts.listed("done")[-200:]
                self.tidy()
            self.go_on_writing()
            gesture = self.chance.choices(list(kinds), list(kinds.values()))[0]
            self.accounts.note(f"{number} {gesture.__name__}")
            gesture()
            ahead = begun + (number + 1) / rate - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
            self.made = number + 1
            if self.made % 5000 == 0:
                self.say(self.made, time.monotonic() - begun)
            if self.is_told_to_end:
                break
        self.go_on_writing(is_last=True)

    def say(self, number: int, seconds: float) -> None:
        counts = {state: len(self.accounts.listed(state)) for state in STATES}
        print(f"{number} gestures, {number / seconds:.0f} a second, {len(self.accounts.texts)} jobs: {counts}", flush=True)

    # MARK: what else happens

    def change_file(self) -> None:
        self.server.change(self.chance.choice(CHANGING))

    def kill(self) -> None:
        worker = self.chance.choice(self.fleet.workers)
        self.cases["SIGKILL"] += 1
        self.fleet.signal(worker, signal.SIGKILL)
        make_old(self.spool, claims(self.spool, worker))

    def terminate(self) -> None:
        self.cases["SIGTERM"] += 1
        self.fleet.signal(self.chance.choice(self.fleet.workers), signal.SIGTERM)

    def look(self) -> None:
        """Checks that status agrees with ls, if nothing moves between two looks."""
        before = self.counts()
        done = subprocess.run([self.program, "status", "--json", self.spool], capture_output=True, check=False)
        if done.returncode != 0:
            self.problems.append(f"status --json ended with {done.returncode}: {done.stderr!r}")
        elif before == self.counts():
            self.comparisons += 1
            if (said := {state: count for state, count in json.loads(done.stdout)["jobs"].items() if state in before}) != before:
                self.problems.append(f"status says {said}, ls {before}")

    def counts(self) -> dict[str, int]:
        """The numbers by ls, in the words of status."""
        names = {state: {name for name in os.listdir(self.spool / state) if not name.startswith(".")} for state in STATES}
        failed = [name for name in names["failed"] if not is_beside(name, names["failed"])]
        return {"waiting": len(names["new"]), "paused": len(names["hold"]), "failed": len(failed), "done": len(names["done"])}

    # MARK: the end

    def finish(self) -> None:
        """Lets all jobs continue that can; three runs then have to end all of them."""
        self.fleet.end()
        for path in [path for state in STATES for path in (self.spool / state).iterdir() if path.is_dir() and not path.is_symlink()]:
            self.discard(str(path))
        self.ask("release", "--all")
        self.ask("retry", "--failed")
        # A job without its last newline is ignored for this time.
        time.sleep(SETTLING)
        for _ in range(3):
            if self.accounts.listed("hold"):
                # They stayed there while new had others of their names.
                self.ask("release", "--all")
                time.sleep(SETTLING)
            for name in self.accounts.listed("partial"):
                self.set_time(self.accounts.place("partial", name), time.time() - 1)
            # Their owners are dead, and files that were put there by hand have no owner.
            for name in self.accounts.listed("cur"):
                self.set_time(self.accounts.place("cur", name), time.time() - PAST_LEASE)
            worker = self.fleet.start("--once")
            try:
                worker.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.problems.append(f"a run does not end within {PATIENCE} s: {worker.log}")
                return
            self.fleet.workers.remove(worker)
            self.fleet.judge(worker)

    def report(self, found: list[str], seconds: float) -> None:
        for case, count in sorted(self.cases.items()):
            print(f"{count:7}  {case}")
        texts = self.accounts.texts.values()
        print(
            f"{self.made} gestures in {seconds:.0f} s, {self.made / seconds:.0f} a second; {len(texts)} jobs,"
            f" {sum(text.files for text in texts)} files of them left, {sum(text.is_spoiled for text in texts)} spoiled by hand,"
            f" {len(os.listdir(self.spool / 'files'))} payloads; {self.fleet.started} workers; {self.comparisons} comparisons with status;"
            f" {len(found)} problems"
        )
        told: Counter[str] = Counter()
        for problem in found:
            # Three of each kind are enough.
            kind = re.sub(r"[0-9'].*", "", problem, flags=re.DOTALL)
            told[kind] += 1
            if told[kind] <= 3:
                print("  " + problem.encode(errors="backslashreplace").decode())
        for kind, count in told.items():
            if count > 3:
                print(f"  {count} in all: {kind} …")


def is_beside(name: str, names: set[str]) -> bool:
    """Whether it is data that was set aside, or a record."""
    return name.endswith(".part") and name + ".record" not in names or name.endswith(".record") and name.removesuffix(".record") in names


def play(options: argparse.Namespace, work: Path) -> bool:
    chance = random.Random(options.seed)
    spool = work / "spool"
    subprocess.run([options.program, "init", spool], check=True, stdout=subprocess.DEVNULL)
    (work / "logs").mkdir()
    with ExitStack() as stack:
        server = stack.enter_context(Server(work / "server", rate="256k"))
        for name in FIXED + CHANGING:
            server.add(name, chance.choice([chance.randrange(1, 4096), chance.randrange(1, 65536), chance.randrange(1 << 18, 1 << 20)]))
        witness = stack.enter_context(Witness(spool, work / "witness", ("files",)))
        diary = stack.enter_context(open(work / "diary", "w", encoding="utf-8"))
        fleet = Fleet(options.program.resolve(), [Host("alpha", spool), Host("beta", spool)], WORKERS, work / "logs", chance, FINE)
        stack.callback(fleet.end)
        gestures = Gestures(options.program, spool, server, fleet, Accounts(spool, diary), chance)
        signal.signal(signal.SIGTERM, gestures.end)
        begun = time.monotonic()
        gestures.run(options.gestures, options.rate)
        seconds = time.monotonic() - begun
        gestures.finish()
        found = gestures.problems + fleet.problems + problems(gestures.accounts, server, witness)
        gestures.report(found, seconds)
    return not found


def main() -> int:
    options = arguments()
    print(f"{options.gestures} gestures, {WORKERS} workers on two hosts, seed {options.seed}", flush=True)
    with workplace(options.keep, "gestures-") as work:
        return 0 if play(options, work) else 1


if __name__ == "__main__":
    sys.exit(main())
