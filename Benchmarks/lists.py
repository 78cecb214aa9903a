"""Rows of long lists: `add --from`."""

import hashlib
import subprocess
import sys
from pathlib import Path

from measuring import Candidate, Failed, alternate
from row import Bench, Goal, Result

MIB = 1 << 20
BASE = "http://server/set"

# What the jobs are as files, with nothing checked, named twice or made durable one by one: the time that this file
# system asks for so many.
FLOOR = """import os, sys
new = sys.argv[2]
with open(sys.argv[1]) as lines:
    for line in lines:
        digest, path = line.split()
        with open(f"{new}/{os.path.basename(path)}", "w") as job:
            job.write(f"url: %s/{path}\\noutput: {path}\\nsha256: {digest}\\n")
os.sync()
""" % BASE


def sums(bench: Bench, count: int) -> Path:
    """A list as sha256sum(1) prints it."""
    path = bench.scratch.root / f"SHA256SUMS-{count}"
    with open(path, "w") as file:
        for number in range(count):
            digest = hashlib.sha256(b"%d" % number).hexdigest()
            file.write(f"{digest}  {number // 1000:04}/file-{number:07}.bin\n")
    return path


def adding(bench: Bench, path: Path, count: int) -> Candidate:
    new = bench.clients.spool / "new"

    def check(thorough: bool) -> None:
        names = sum(1 for _ in new.iterdir())
        if names != count:
            raise Failed(f"{names} of {count} jobs are dropped")

    command = [str(bench.program), "add", "--spool", str(bench.clients.spool), "--from", str(path), "--base", BASE]
    return Candidate("spoolrun add --from", command, lambda: bench.clients.drop([]), check)


def one_list(bench: Bench) -> Result:
    count = bench.size(100_000, 10_000)
    path = sums(bench, count)
    ours = adding(bench, path, count)
    new = str(bench.clients.spool / "new")
    floor = Candidate("the files alone, by Python", [sys.executable, "-c", FLOOR, str(path), new], ours.prepare, ours.check)
    result = Result(f"A list of {count:,} checksums", rates=("jobs/s", count))
    result.series = alternate(bench.runner, [ours, floor], bench.runs)
    result.goals = [Goal(floor.name, result.ratio(ours.name, floor.name), 2.0)]
    result.notes.append(
        "spoolrun checks the whole list first, flushes each job before it gets its name in `new/`, and all names at the end. "
        "The loop writes each file in its place and flushes once."
    )
    return result


def million_lines(bench: Bench) -> Result:
    """As many as fit a run. The second candidate takes the list up where a kill has ended the first."""
    count = bench.size(1_000_000, 100_000)
    path = sums(bench, count)
    ours = adding(bench, path, count)

    def cut() -> None:
        """A spool as a command leaves it that was killed halfway."""
        ours.prepare()
        half = path.with_suffix(".half")
        with open(path) as lines, open(half, "w") as file:
            file.writelines(line for number, line in enumerate(lines) if number < count // 2)
        command = [str(half) if part == str(path) else part for part in ours.command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    again = Candidate("the same, half of it there", ours.command, cut, ours.check)
    result = Result(f"A list of {count:,} checksums")
    result.series = alternate(bench.runner, [ours, again], 1)
    for candidate in (ours, again):
        one = result.series[candidate.name]
        sound = one.costs and not one.failure
        result.goals += [
            Goal(candidate.name, one.wall if sound else None, 45, "s"),
            Goal(f"{candidate.name}: peak resident set", one.median("rss") / MIB if sound else None, 100, "MiB"),
        ]
    return result
