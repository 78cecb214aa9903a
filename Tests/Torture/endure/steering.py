"""Drops jobs in several ways, and changes them with mv, touch and rm or with commands, as people do."""

import os
import random
import re
import subprocess
import time
import zlib
from collections import Counter
from pathlib import Path

from faults import CHANGING, FIXED
from ledger import Job, Ledger, output_of
from link import SERVER
from server import Server

# Names as people give them; `\udcff` stands for a byte that is not UTF-8.
NAMES = ["job-{}", "job-{}", "job-{}", "größe {}", 'a "b" \\{}', "latin-\udcff-{}"]


class Steering:
    def __init__(self, program: Path, ledger: Ledger, server: Server, chance: random.Random):
        self.program = program
        self.ledger = ledger
        self.spool = ledger.spool
        self.server = server
        self.chance = chance
        self.cases: Counter[str] = Counter()
        self.problems: list[str] = []
        # Jobs that are written to new in pieces: the open descriptor, the rest, and when to continue.
        self.writing: list[tuple[int, bytes, float]] = []

    # MARK: drops

    def drop(self) -> None:
        job = self.make()
        self.ledger.add(job)
        ways = [self.rename, self.copy, self.write_in_pieces, self.add]
        self.chance.choices(ways, [6, 3, 3, 0 if job.is_hopeless else 1])[0](job)

    def make(self) -> Job:
        number = len(self.ledger.jobs)
        output = f"payload-{number:06}"
        name = self.chance.choice(NAMES).format(number)
        if self.ledger.jobs and self.chance.random() < 0.03:
            # Another job's name, unless that is in new, where it would be replaced.
            shared = self.chance.choice(list(self.ledger.jobs.values())[-50:]).name
            name = name if (self.spool / "new" / shared).exists() else shared
        file = self.chance.choice(FIXED + CHANGING)
        is_declared = file in FIXED and self.chance.random() < 0.8
        is_hopeless = self.chance.random() < 0.01
        lines = [f"url: {self.chance.choice(['http', 'http', 'https'])}://{SERVER}/{file}", f"output: {output}"]
        lines += ["timeout: 3s 10m", f"attempts: {self.chance.choice([1, 2, 12, 1000])}"]
        if is_declared:
            content = self.server.content(file, 0)
            lines += [f"size: {len(content)}", f"crc32: {zlib.crc32(content):08X}"]
        if self.chance.random() < 0.3:
            lines.append("connections: 4")
        if is_hopeless:
            lines.append("colour: red")
        return Job(output, name, file, "\n".join(lines) + "\n", 0 if is_declared else None, is_hopeless)

    def probe(self) -> Job:
        """A plain job that no person changes."""
        output = f"payload-{len(self.ledger.jobs):06}"
        job = Job(output, f"probe-{output}", FIXED[0], f"url: http://{SERVER}/{FIXED[0]}\noutput: {output}\n", 0, False)
        self.ledger.add(job)
        self.rename(job)
        return job

    def rename(self, job: Job) -> None:
        self.cases["dropped by rename"] += 1
        (self.spool / "tmp" / job.name).write_text(job.text)
        (self.spool / "tmp" / job.name).rename(self.spool / "new" / job.name)

    def copy(self, job: Job) -> None:
        self.cases["dropped by cp"] += 1
        source = self.spool.parent / "drop"
        source.write_text(job.text)
        subprocess.run(["cp", source, self.spool / "new" / job.name], check=True)

    def write_in_pieces(self, job: Job) -> None:
        self.cases["dropped by > in pieces"] += 1
        text = job.text.encode()
        descriptor = os.open(self.spool / "new" / job.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        half = self.chance.randrange(len(text))
        os.write(descriptor, text[:half])
        self.writing.append((descriptor, text[half:], time.monotonic() + self.chance.uniform(0, 2)))

    def go_on_writing(self, is_last: bool = False) -> None:
        for item in [item for item in self.writing if is_last or item[2] <= time.monotonic()]:
            self.writing.remove(item)
            descriptor, rest, _ = item
            os.write(descriptor, rest)
            os.close(descriptor)

    def add(self, job: Job) -> None:
        options = dict(line.split(": ") for line in job.text.splitlines())
        url = options.pop("url")
        # There is no option for it.
        options.pop("connections", None)
        words = [word for key, value in options.items() for word in (f"--{key}", value)]
        self.command("add", "--name", job.name, *words, url)

    # MARK: gestures

    def steer(self) -> None:
        gesture = self.chance.choices(["hold", "release", "retry", "cancel"], [5, 5, 6, 2])[0]
        sources = {"hold": ["new", "cur", "cur", "partial"], "release": ["hold"], "retry": ["partial", "failed"]}
        place = self.chance.choice(sources.get(gesture, ["new", "cur", "cur", "partial", "hold", "failed"]))
        if not (found := self.ledger.files(place)):
            return
        path = self.chance.choice(found)
        name = path.name.partition(":")[0] if place == "cur" else path.name
        # It is still being written, or has moved on.
        if (output := output_of(path)) is None:
            return
        if self.chance.random() < 0.3:
            self.ask(gesture, name, output)
        else:
            self.move(gesture, path, name, output)

    def move(self, gesture: str, path: Path, name: str, output: str) -> None:
        """Like mv -n, touch and rm. Only this program puts files into hold and new, so nothing is replaced."""
        try:
            if gesture == "cancel":
                path.unlink()
                self.ledger.cancelled.add(output)
            elif gesture == "retry" and path.parent.name == "partial":
                os.utime(path)
            else:
                target = self.spool / ("hold" if gesture == "hold" else "new") / name
                if target.exists():
                    return
                path.rename(target)
            self.cases[f"{gesture} by hand"] += 1
        except FileNotFoundError:
            pass  # It has moved on.

    def ask(self, gesture: str, name: str, output: str) -> None:
        """With the command. If several jobs have had the name, the command decides which it changes."""
        bearers = self.ledger.by_name[re.sub(r"~\d+$", "", name)]
        if gesture == "cancel" and len(bearers) > 1:
            self.ledger.perhaps_cancelled |= bearers
        status = self.command(gesture, "--", name)
        if gesture == "cancel" and status == 0 and bearers == {output}:
            self.ledger.cancelled.add(output)

    def command(self, *words: str) -> int:
        self.cases[f"spoolrun {words[0]}"] += 1
        command = [self.program, words[0], "--spool", self.spool, *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        # 1: there is no such job any more, or there are several.
        if done.returncode not in ((0,) if words[0] == "add" else (0, 1)):
            self.problems.append(f"spoolrun {' '.join(words)!r} ended with {done.returncode}: {done.stderr.strip()}")
        return done.returncode

    def settle(self) -> None:
        """Lets all jobs continue that can."""
        self.go_on_writing(is_last=True)
        for state, gesture in (("hold", "release"), ("failed", "retry"), ("partial", "retry")):
            for path in self.ledger.files(state):
                output = output_of(path)
                if output is not None and not (state == "failed" and self.ledger.jobs[output].is_hopeless):
                    self.move(gesture, path, path.name, output)
