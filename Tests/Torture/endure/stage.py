"""What all changes have in common: the spool, whose files are counted, and the search for files in it."""

import os
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

from accounts import Accounts, missed
from fleet import Fleet
from server import Server

# Files whose CRC-32 a job may declare; and files that change.
FIXED = [f"fixed-{number}" for number in range(60)]
CHANGING = [f"changing-{number}" for number in range(60)]
# Seconds after which something hangs.
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
        # Some of the jobs in done; there are too many to list them each time.
        self.done: list[str] = []
        # Jobs that are written to new in pieces: the open descriptor, the rest, and when to continue.
        self.writing: list[tuple[int, bytes, float]] = []

    def count(self, case: str, is_done: bool | None) -> None:
        self.cases[case if is_done else f"{case}: too late"] += 1

    def any(self, *states: str) -> tuple[str, str] | None:
        """A state that has a job, and the job's name."""
        for state in self.chance.sample(states, len(states)):
            if found := self.done if state == "done" else self.accounts.listed(state):
                name = self.chance.choice(found)
                if self.is_being_written(path := self.accounts.place(state, name)):
                    self.accounts.spoil(self.accounts.token(path))
                return state, name
        return None

    def is_being_written(self, path: str) -> bool:
        """A person who moves such a file to where nobody looks for writers, or edits it, spoils it."""
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

    def ask_and_kill(self, *words: str) -> None:
        """The same, with a SIGKILL after a moment."""
        self.cases[f"spoolrun {words[0]}, killed"] += 1
        self.accounts.note(f"  spoolrun {' '.join(words)}, killed")
        command = [str(self.program), words[0], "--spool", str(self.spool), *words[1:]]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(self.chance.uniform(0, 0.05))
            process.kill()
