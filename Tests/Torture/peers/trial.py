"""Runs one tool against one behaviour, from one length, and says how it ended."""

import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from server import Behaviour
from tools import SIZE, Tool

# Seconds for one run: more than any limit that a tool gets (tools.py).
TIME_LIMIT = 15
# The same as spoolrun's default for attempts.
RUNS = 12


class Verdict(Enum):
    """How a download ended. All but the last two are finished, by the exit status 0."""

    RIGHT = "right"
    OLDER = "older, whole"
    WRONG = "wrong bytes"
    SHORT = "incomplete"
    NOTHING = "no file"
    FAILED = "failed"
    HUNG = "hung"


# The exit status says finished, but it is not.
FALSE = (Verdict.WRONG, Verdict.SHORT, Verdict.NOTHING)


@dataclass(frozen=True)
class Outcome:
    verdict: Verdict
    # The tool's reason for a failure, if a program can read it.
    reason: str


@dataclass(frozen=True, eq=False)
class Trial:
    tool: Tool
    behaviour: Behaviour
    transport: str
    length: int | None

    @property
    def start(self) -> str:
        names = {None: "fresh", SIZE // 2: "half", SIZE - 1: "n-1", SIZE: "n", SIZE + 1: "n+1"}
        return names.get(self.length, str(self.length))

    def run(self, scratch: Path) -> Outcome:
        """Runs the tool until it exits with 0: again after each failure with progress, and after the first failure in
        any case."""
        place = Path(tempfile.mkdtemp(dir=scratch))
        try:
            # A target for each trial, because the server counts requests by target.
            url = self.behaviour.url(self.transport, f"{place.name}/data")
            self.tool.lay(place, self.behaviour, self.length, url)
            return Outcome(self.verdict(place, self.tool.command(place, self.behaviour, url)), self.tool.reason(place))
        finally:
            shutil.rmtree(place)

    def verdict(self, place: Path, command: list[str]) -> Verdict:
        for number in range(RUNS):
            extent = self.tool.extent(place)
            status = run(command, place)
            if status is None:
                return Verdict.HUNG
            if status == 0:
                return self.finished(place)
            if not self.tool.may_run_again(place) or number > 0 and self.tool.extent(place) == extent:
                break
        return Verdict.FAILED

    def finished(self, place: Path) -> Verdict:
        output = self.tool.output(place)
        if not output.exists():
            return Verdict.NOTHING
        content = output.read_bytes()
        if content == self.behaviour.final:
            return Verdict.RIGHT
        if content == self.behaviour.holds:
            return Verdict.OLDER
        is_prefix = self.behaviour.final.startswith(content) or self.behaviour.holds.startswith(content)
        return Verdict.SHORT if is_prefix else Verdict.WRONG


def run(command: list[str], place: Path) -> int | None:
    """The exit status; None if it had to be killed."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "LC_ALL": "C.UTF-8"}
    process = subprocess.Popen(
        command, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )
    try:
        return process.wait(TIME_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
