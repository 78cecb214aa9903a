"""The row of resuming: the time until a long partial file grows again."""

import os
import re
import signal
import time
import urllib.request
from pathlib import Path

from clients import ARIA2, CURL
from measuring import Cost, Failed, Series, settle, stop, wait_until
from row import Bench, Goal, Result
from server import zeros_crc32
from single import sized

GIB = 1 << 30
# The data that may be beyond the last checkpoint of a killed worker (spool(5), checkpoint).
BEYOND = 256 << 20
# A file that is large enough to be started and stopped.
SHORT = 256 << 20
# Bytes after the last checkpoint.
FRESH = 16 << 20


def time_to_grow(bench: Bench, command: list[str], file: Path, length: int) -> Cost:
    """Seconds from the start of `command` to the first byte in `file` beyond `length`."""
    settle()
    begin = time.perf_counter()
    process = bench.runner.spawn(command)
    try:
        grown = wait_until(lambda: os.stat(file).st_size > length, 300, f"{command[0]} goes on", pause=0.0001)
    finally:
        stop(process, signal.SIGKILL)
    return Cost(grown - begin, 0, 0)


class Interrupted:
    """A job of spoolrun that was stopped after 50 GiB. It is really started with a short file, so that the disk needs
    no space for all of it. Then the file, the data and the journal are made longer.

    The file consists of zeros, so that the data needs no space and its CRC-32 is known without reading it.
    """

    def __init__(self, bench: Bench, url: str, source: Path, length: int):
        self.bench, self.url, self.source, self.length = bench, url, source, length
        self.part = bench.clients.spool / "partial" / "job-0000000.part"
        self.job = bench.clients.spool / "partial" / "job-0000000"
        self.command = [str(bench.program), "--once", str(bench.clients.spool)]

    def prepare(self, marked: int) -> None:
        """Data of `length`, whose CRC-32 is in the journal up to `marked`. Less than `length`: the worker was killed;
        otherwise it was told to stop, as at a reboot."""
        whole = self.source.stat().st_size
        os.truncate(self.source, SHORT)
        short = self.validators()
        self.bench.clients.drop([self.url])
        process = self.bench.runner.spawn(self.command)
        try:
            wait_until(lambda: self.part.exists() and self.part.stat().st_size > 0, 60, "spoolrun begins")
        finally:
            stop(process, signal.SIGTERM)
        text = self.job.read_text()
        os.truncate(self.source, whole)
        for old, new in zip(short, self.validators(), strict=True):
            if old not in text:
                raise Failed(f"the journal lacks {old}")
            text = text.replace(old, new)
        last = re.compile(r"^interrupted: .*\n\Z", re.MULTILINE)
        if not last.search(text):
            raise Failed("the job does not end in interrupted:, so its state cannot be made longer")
        crc = f"crc32={zeros_crc32(marked):08X}"
        if marked < self.length:
            text = last.sub(f"checkpoint: {marked} {crc}\n", text)
        else:
            end = re.sub(r" at=\d+ ", f" at={marked} ", last.search(text)[0])
            # The last checkpoint is as far back as it is at 5 MB/s.
            durable = marked - FRESH
            checkpoint = f"checkpoint: {durable} crc32={zeros_crc32(durable):08X}\n"
            text = last.sub(checkpoint + re.sub(r"crc32=\S+", crc, end), text)
        self.job.write_text(text)
        os.truncate(self.part, self.length)
        # In the page cache, as what a worker has just written is.
        with self.part.open("r+b") as data:
            data.seek(self.length - FRESH)
            data.write(bytes(FRESH))

    def validators(self) -> tuple[str, str]:
        """What the journal says about the file that is served now; not its date, which is too young to be a strong
        validator."""
        with urllib.request.urlopen(urllib.request.Request(self.url, method="HEAD")) as answer:
            fields = answer.headers
        return f"size={fields['Content-Length']}", fields["ETag"].strip('"')


def resume(bench: Bench) -> Result:
    length, whole = bench.size(50 * GIB, 5 * GIB), bench.size(60 * GIB, 6 * GIB)
    source = bench.server.add_sparse("sparse", whole)
    url = f"{bench.server.http}/slow/sparse"
    out = bench.clients.out / "sparse"
    interrupted = Interrupted(bench, url, source, length)

    def cut() -> None:
        bench.clients.fresh()
        with open(out, "wb") as file:
            file.truncate(length)

    killed = f"spoolrun, killed {sized(BEYOND)} past a checkpoint"
    ways = {
        "spoolrun": (interrupted.command, interrupted.part, lambda: interrupted.prepare(length)),
        killed: (interrupted.command, interrupted.part, lambda: interrupted.prepare(length - BEYOND)),
        "curl -C -": ([*CURL, "-C", "-", "--output", str(out), url], out, cut),
        "aria2c -c": ([*ARIA2, "-c", "-d", str(out.parent), "-o", out.name, url], out, cut),
    }
    result = Result(f"Resuming at {sized(length)} of {sized(whole)}: time to the first new byte in the file")
    result.series = {name: Series(command) for name, (command, _, _) in ways.items()}
    for _ in range(bench.runs):
        for name, (command, file, prepare) in ways.items():
            series = result.series[name]
            if series.failure is None:
                try:
                    prepare()
                    series.costs.append(time_to_grow(bench, command, file, length))
                except Failed as failure:
                    series.failure = str(failure)
    ours = result.series["spoolrun"]
    result.goals = [Goal("the first new byte", None if ours.failure else ours.wall * 1000, 9, "ms")]
    result.notes.append(
        "curl and aria2c know nothing of what they have. spoolrun knows the CRC-32 up to the last checkpoint, and reads "
        f"what a killed worker left beyond it, {sized(BEYOND)} at most."
    )
    source.unlink()
    return result
