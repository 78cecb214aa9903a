"""One scenario's spool, the real program on it, and the outcomes of its jobs."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

STATES = ("new", "cur", "partial", "hold", "failed", "done")
# Seconds for one run, more than any run needs.
PATIENCE = 60


class Trial:
    def __init__(self, program: Path, spool: Path, authority: Path, environment: dict[str, str]):
        self.program = program
        self.spool = spool
        self.environment = os.environ | environment
        self.options = ["--once", "--cacert", str(authority)]
        self.problems: list[str] = []
        self.runs = 0
        subprocess.run([program, "init", spool], check=True, stdout=subprocess.DEVNULL)

    def drop(self, name: str, url: str, *lines: str) -> None:
        text = "".join(f"{line}\n" for line in (f"url: {url}", f"output: {name}", "timeout: 10s 1m", *lines))
        (self.spool / "tmp" / name).write_text(text)
        (self.spool / "tmp" / name).rename(self.spool / "new" / name)

    def start(self, *options: str) -> subprocess.Popen:
        self.runs += 1
        with open(self.spool.parent / "log", "ab") as log:
            command = [self.program, *self.options, *options, self.spool]
            return subprocess.Popen(command, stderr=log, stdout=log, env=self.environment)

    def end(self, process: subprocess.Popen) -> None:
        try:
            status = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.problems.append(f"HANGS for {PATIENCE} s")
            return
        # 1: given up, 75: waits for another attempt.
        if status not in (0, 1, 75):
            self.problems.append(f"STATUS {status}")

    def run(self, *options: str) -> None:
        self.end(self.start(*options))

    def kill_in_the_middle(self, name: str, at: int, *options: str) -> int:
        """kill -9 when the data has this length; returns the length that it had then."""
        process = self.start(*options)
        self.wait_for(process, name, at)
        process.send_signal(signal.SIGKILL)
        process.wait()
        return self.length(name)

    def wait_for(self, process: subprocess.Popen, name: str, at: int) -> None:
        end = time.monotonic() + PATIENCE
        while process.poll() is None and self.length(name) < at and time.monotonic() < end:
            time.sleep(0.01)
        if process.poll() is not None or time.monotonic() >= end:
            self.problems.append(f"not caught in the middle, but at {self.length(name)}")

    def length(self, name: str) -> int:
        try:
            return (self.spool / "partial" / f"{name}.part").stat().st_size
        except FileNotFoundError:
            return 0

    def settle(self, rounds: int, *options: str) -> None:
        """`touch partial/x` and another run, until all jobs are done or given up."""
        for _ in range(rounds):
            # A run that hangs would hang again.
            if not self.waiting() or self.problems:
                return
            for path in (self.spool / "partial").iterdir():
                if path.suffix != ".part":
                    os.utime(path)
            self.run(*options)

    def waiting(self) -> list[Path]:
        return [path for state in ("new", "cur", "partial") for path in (self.spool / state).iterdir() if path.suffix != ".part"]

    def state(self, name: str) -> str:
        found = [state for state in STATES for path in (self.spool / state).iterdir() if path.name.partition(":")[0] == name]
        return " and ".join(found) or "nowhere"

    def journal(self, name: str) -> str:
        for state in STATES:
            for path in (self.spool / state).iterdir():
                if path.name.partition(":")[0] == name:
                    return path.read_text(errors="replace")
        return ""

    def codes(self, name: str) -> list[str]:
        """The codes of its failures, in order."""
        return re.findall(r"^failed: .* code=(\S+)", self.journal(name), re.MULTILINE)

    def fetched(self, name: str) -> int:
        found = re.findall(r"^done: .* bytes-fetched=(\d+)", self.journal(name), re.MULTILINE)
        return int(found[-1]) if found else 0

    def validator(self, name: str) -> str | None:
        """The validator that the next bytes must have: that of the last response that had one."""
        for line in reversed(re.findall(r"^response: .*", self.journal(name), re.MULTILINE)):
            if found := re.search(r' (?:etag|modified)="((?:[^"\\]|\\.)*)"', line):
                return found[1].replace('\\"', '"').replace("\\\\", "\\")
        return None

    def payload(self, name: str) -> bytes | None:
        try:
            return (self.spool / "files" / name).read_bytes()
        except FileNotFoundError:
            return None
