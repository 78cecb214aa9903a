"""Command lines of spoolrun and of the other tools, as a careful user writes them, and how each finds an interrupted
download.

No tool retries by itself: each is run again, by the same rule (trial.py). Each gives up on a silent server after IDLE
seconds and, if it has an option for that, on any download after TOTAL.
"""

import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import time
import zlib
from pathlib import Path

from server import Behaviour, LyingServer

IDLE = 3
TOTAL = 10
# The length of the data when a download was interrupted.
SIZE = 10_000


class Tool:
    """A tool that is told to continue `data` in the working directory."""

    name = ""
    # Lengths of the existing data; None for no data.
    lengths: list[int | None] = [None, 1, SIZE // 2, SIZE - 1, SIZE, SIZE + 1]

    def __init__(self, program: str, server: LyingServer):
        self.program = program
        self.ca = str(server.ca)

    def lay(self, place: Path, behaviour: Behaviour, length: int | None, url: str) -> None:
        """Puts into `place` what an earlier run leaves."""
        if length is not None:
            (place / "data").write_bytes(behaviour.partial(length))

    def command(self, place: Path, behaviour: Behaviour, url: str) -> list[str]:
        raise NotImplementedError

    def output(self, place: Path) -> Path:
        """The file with the final name after an exit with 0."""
        return place / "data"

    def extent(self, place: Path) -> int:
        """A number that grows if a run made progress."""
        return self.output(place).stat().st_size if self.output(place).exists() else -1

    def may_run_again(self, place: Path) -> bool:
        """Called after a run that failed."""
        return True

    def reason(self, place: Path) -> str:
        """Why the last run failed, in a word, if a file says so."""
        return ""


class Spoolrun(Tool):
    name = "spoolrun"

    def lay(self, place: Path, behaviour: Behaviour, length: int | None, url: str) -> None:
        subprocess.run([self.program, "init", place / "spool"], check=True)
        lines = [f"url: {url}", "output: data", f"timeout: {IDLE}s {TOTAL}s"]
        if "size" in behaviour.declares:
            lines.append(f"size: {len(behaviour.final)}")
        if "crc32" in behaviour.declares:
            lines.append(f"crc32: {zlib.crc32(behaviour.final):08x}")
        if length is None:
            self.write(place / "spool/new/job", lines)
            return
        held = behaviour.partial(length)
        part = place / "spool/partial/job.part"
        part.write_bytes(held)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        moment = "2026-01-02T03:04:05Z"
        lines += [
            f"started: {moment} attempt=1 worker={platform.node()}.1.0000 boot={boot} mirror=1 url={url}",
            f"response: mirror=1 at=0 part={part.stat().st_ino}{behaviour.facts}",
            f'interrupted: {moment} attempt=1 at={length} crc32={zlib.crc32(held):08X} reason="stopped by signal 15"',
        ]
        self.write(place / "spool/partial/job", lines)
        os.utime(place / "spool/partial/job", (0, 0))

    @staticmethod
    def write(path: Path, lines: list[str]) -> None:
        path.write_text("".join(f"{line}\n" for line in lines))

    def command(self, place: Path, behaviour: Behaviour, url: str) -> list[str]:
        return [self.program, "--once", "--cacert", self.ca, "spool"]

    def output(self, place: Path) -> Path:
        return place / "spool/files/data"

    def extent(self, place: Path) -> int:
        part = place / "spool/partial/job.part"
        return part.stat().st_size if part.exists() else -1

    def may_run_again(self, place: Path) -> bool:
        waiting = place / "spool/partial/job"
        if waiting.exists():
            os.utime(waiting)
        return waiting.exists()

    def reason(self, place: Path) -> str:
        for state in ("failed", "partial"):
            job = place / "spool" / state / "job"
            if job.exists():
                codes = re.findall(r"^failed: .* code=(\S+)", job.read_text(encoding="utf-8"), re.MULTILINE)
                return codes[-1] if codes else ""
        return ""


class Curl(Tool):
    name = "curl -C -"

    def command(self, place: Path, behaviour: Behaviour, url: str) -> list[str]:
        return [
            self.program, "--silent", "--show-error", "--fail", "--location", "--continue-at", "-", "--connect-timeout", str(IDLE),
            "--speed-time", str(IDLE), "--speed-limit", "1", "--max-time", str(TOTAL), "--cacert", self.ca, "--output", "data", url,
        ]


class Wget(Tool):
    name = "wget -c"

    def command(self, place: Path, behaviour: Behaviour, url: str) -> list[str]:
        return [
            self.program, "--no-config", "--quiet", "--continue", "--tries=1", f"--timeout={IDLE}",
            f"--ca-certificate={self.ca}", url,
        ]


class Wget2(Wget):
    name = "wget2 -c"


class Aria2(Tool):
    name = "aria2c -c"

    def command(self, place: Path, behaviour: Behaviour, url: str) -> list[str]:
        command = [
            self.program, "--no-conf", "--quiet", "--continue", "--always-resume=false", "--auto-file-renaming=false",
            "--file-allocation=none", "--max-tries=1", f"--timeout={IDLE}", f"--connect-timeout={IDLE}",
            f"--ca-certificate={self.ca}", "--out=data",
        ]
        if "crc32" in behaviour.declares:
            command.append(f"--checksum=sha-256={hashlib.sha256(behaviour.final).hexdigest()}")
        return [*command, url]


class Axel(Tool):
    """It only continues what its own state file describes. So it is really interrupted, once for each version and
    length."""

    name = "axel"
    lengths = [None, 1, SIZE // 2, SIZE - 1]

    def __init__(self, program: str, server: LyingServer):
        super().__init__(program, server)
        self.interrupted: dict[tuple[bytes, int], Path] = {}
        versions = {behaviour.holds: behaviour for behaviour in server.behaviours}
        current = next(behaviour.final for behaviour in server.behaviours if behaviour.final == behaviour.holds)
        for holds in versions:
            for length in self.lengths[1:]:
                kind = "payload" if holds == current else "previous"
                place = server.directory / f"axel-{kind}-{length}"
                self.interrupt(place, f"{server.stopping}/{kind}/{length}", holds[:length])
                self.interrupted[holds, length] = place

    def interrupt(self, place: Path, url: str, expected: bytes) -> None:
        place.mkdir()
        command = [self.program, "--quiet", "--num-connections=1", "--output=data", url]
        process = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        try:
            while not (place / "data").exists() or (place / "data").read_bytes()[: len(expected)] != expected:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"axel could not be interrupted after {len(expected)} bytes of {url}")
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            process.wait(30)
        finally:
            process.kill()
            process.wait()
        if not (place / "data.st").exists():
            raise RuntimeError(f"axel left no state file after {len(expected)} bytes")

    def lay(self, place: Path, behaviour: Behaviour, length: int | None, url: str) -> None:
        # Without this option, a failed connection is retried after 20 s.
        (place / ".axelrc").write_text("reconnect_delay = 1\n")
        if length is not None:
            for name in ("data", "data.st"):
                shutil.copy(self.interrupted[behaviour.holds, length] / name, place)

    def command(self, place: Path, behaviour: Behaviour, url: str) -> list[str]:
        # With --insecure, because it refuses the certificate for 127.0.0.1 and for localhost.
        return [self.program, "--quiet", "--insecure", "--num-connections=1", f"--timeout={IDLE}", "--output=data", url]


PROGRAMS: dict[str, type[Tool]] = {"curl": Curl, "wget": Wget, "wget2": Wget2, "aria2c": Aria2, "axel": Axel}
