"""A worker on a host, and what it logs."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from network import Host, innermost

# Seconds in which a worker that was told to stop must end.
PATIENCE = 60


@dataclass
class Event:
    # By time.monotonic(), when the rig saw it: the host's clock may be wrong.
    at: float
    what: str
    job: str
    fields: dict[str, str]


class Worker:
    """`behind`: a command that runs its arguments."""

    def __init__(self, program: Path, host: Host, spool: Path, log: Path, options: list[str], behind: Sequence[str] = ()):
        self.host = host
        self.log = log
        self.events: list[Event] = []
        self.read = 0
        # What it says before it can log, and what the runtime says when it crashes.
        self.said: list[str] = []
        command = host.command(*behind, program, "-v", "--log-format", "json", "--per-host", "32", *options, spool)
        with open(log, "wb") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def look(self) -> list[Event]:
        """Reads what it has logged since."""
        with open(self.log, "rb") as file:
            file.seek(self.read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self.read += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            try:
                fields = json.loads(line)
            except json.JSONDecodeError:
                self.said.append(line)
                continue
            self.events.append(Event(time.monotonic(), fields.get("event", ""), fields.get("job", ""), fields))
        return self.events

    def jobs(self, *events: str) -> set[str]:
        return {event.job for event in self.look() if event.what in events}

    def first(self, job: str, after: float = 0) -> float | None:
        """When it first began this job, or ended it, after that moment."""
        return next((event.at for event in self.look() if event.job == job and event.at > after and event.what in ("started", "done")), None)

    def in_hand(self) -> set[str]:
        """The jobs that it has begun and not ended."""
        found: set[str] = set()
        for event in self.look():
            if event.what == "started":
                found.add(event.job)
            elif event.what in ("done", "failed", "held", "taken-over", "cancelled", "parked", "broken"):
                found.discard(event.job)
        return found

    def signal(self, number: int) -> None:
        try:
            os.kill(innermost(self.process.pid), number)
            if number == signal.SIGCONT:
                # nsenter(1) stops with it.
                self.process.send_signal(number)
        except ProcessLookupError:
            pass

    def status(self) -> int | None:
        return self.process.poll()

    def end(self) -> int:
        if self.status() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self.process.wait()
            self.said.append(f"does not end within {PATIENCE} s of SIGTERM")
            return -signal.SIGKILL
