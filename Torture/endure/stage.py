"""What all gestures have in common: the spool, whose files are counted, and what is looked for in it."""

import os
import random
import subprocess
from collections import Counter
from pathlib import Path

from accounts import Accounts, missed
from fleet import Fleet
from server import Server

# Of which a job may declare the CRC-32; and those that change.
FIXED = [f"fixed-{number}" for number in range(60)]
CHANGING = [f"changing-{number}" for number in range(60)]
# Seconds without which nothing hangs.
PATIENCE = 120


class Stage:
    def __init__(self, program: Path, spool: Path, server: Server, fleet: Fleet, accounts: Accounts, chance: random.Random):
        self.program = program.resolve()
        self.spool = spool
        self.server = server
        self.fleet = fleet
        self.accounts = accounts
        self.chance = chance
        self.cases: Counter[str] = Counter()
        self.problems: list[str] = []
        # Some of what is in done, which is too much to be listed each time.
        self.done: list[str] = []
        # Written into new by pieces: the open descriptor, what is left, and when to go on.
        self.writing: list[tuple[int, bytes, float]] = []

    def count(self, case: str, is_done: bool | None) -> None:
        self.cases[case if is_done else f"{case}: too late"] += 1

    def any(self, *states: str) -> tuple[str, str] | None:
        """A state that has something, and the name of it."""
        for state in self.chance.sample(states, len(states)):
            if found := self.done if state == "done" else self.accounts.listed(state):
                name = self.chance.choice(found)
                if self.is_being_written(path := self.accounts.place(state, name)):
                    self.accounts.spoil(self.accounts.token(path))
                return state, name
        return None

    def is_being_written(self, path: str) -> bool:
        """Whoever moves such a one to where nobody looks for writers, or edits it, gets what he asks for."""
        try:
            inode = os.lstat(path).st_ino
        except OSError as error:
            return missed(error)
        return any(os.fstat(descriptor).st_ino == inode for descriptor, _, _ in self.writing)

    def set_time(self, path: str, seconds: float) -> bool:
        try:
            os.utime(path, (seconds, seconds), follow_symlinks=False)
        except OSError as error:
            return missed(error)
        return True

    def ask(self, *words: str) -> tuple[int, str]:
        self.cases[f"spoolrun {words[0]}"] += 1
        self.accounts.note(f"  spoolrun {' '.join(words)}")
        place = [] if words[0] == "status" else ["--spool", str(self.spool)]
        command = [str(self.program), words[0], *place, *words[1:], *([str(self.spool)] if words[0] == "status" else [])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape", check=False, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.problems.append(f"spoolrun {words} takes more than {PATIENCE} s")
            return -1, ""
        allowed = {"add": (0, 64), "status": (0,), "clean": (0,)}.get(words[0], (0, 1))
        if done.returncode not in allowed:
            self.problems.append(f"spoolrun {' '.join(words)!r} ended with {done.returncode}: {done.stderr.strip()}")
        return done.returncode, done.stdout
