"""Remembers which jobs were dropped, and finds where each of them is."""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

STATES = ("new", "cur", "partial", "hold", "failed", "done")


@dataclass
class Job:
    # Identifies the job: names may be shared, and a worker may change them.
    output: str
    name: str
    file: str
    text: str
    # The only version of its file that is right; None for any.
    version: int | None
    # It ends in failed in any case.
    is_hopeless: bool


@dataclass
class Ledger:
    spool: Path
    jobs: dict[str, Job] = field(default_factory=dict)
    by_name: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    # Jobs whose removal was seen; and jobs that a command may have taken because they had the name that it was given.
    cancelled: set[str] = field(default_factory=set)
    perhaps_cancelled: set[str] = field(default_factory=set)

    def add(self, job: Job) -> None:
        self.jobs[job.output] = job
        self.by_name[job.name].add(job.output)

    def living(self) -> int:
        """About how many are neither done nor cancelled."""
        return sum(len(self.files(state)) for state in STATES if state != "done")

    def files(self, state: str) -> list[Path]:
        """The files of jobs in it: no data, and no records of rejected files."""
        return [path for path in (self.spool / state).iterdir() if not path.name.endswith((".part", ".record"))]

    def places(self) -> dict[str, list[str]]:
        """The place of each job, by output."""
        found: dict[str, list[str]] = {output: [] for output in self.jobs}
        for state in STATES:
            for path in self.files(state):
                found.setdefault(output_of(path) or f"no job of ours: {path.name!r}", []).append(state)
        return found

    def counts(self) -> dict[str, int]:
        """The numbers by `ls | wc -l`, in the words of status."""
        found = {state: len(self.files(state)) for state in STATES}
        return {"waiting": found["new"], "running": found["cur"], "paused": found["hold"], "failed": found["failed"], "done": found["done"]} | {
            "retrying or interrupted": found["partial"]
        }

    def problems(self) -> list[str]:
        """What is wrong at the end."""
        problems = []
        for output, states in self.places().items():
            job = self.jobs.get(output)
            if job is None:
                problems.append(f"{output}, in {states}")
            elif len(states) > 1:
                problems.append(f"{output}: in several places: {states}")
            elif not states and output not in self.cancelled | self.perhaps_cancelled:
                problems.append(f"{output}: lost")
            elif states and output in self.cancelled:
                problems.append(f"{output}: was cancelled, and is in {states[0]}")
            elif states and states[0] != ("failed" if job.is_hopeless else "done"):
                problems.append(f"{output}: left in {states[0]}")
        return problems

    def payload_problems(self, version_of: Callable[[str, bytes], int | None], told: set[str]) -> list[str]:
        """
        version_of: as of `Server`.
        told: of which jobs the hook `done` was told."""
        problems = []
        outputs = {path.name for path in (self.spool / "files").iterdir()}
        for output in sorted(outputs):
            job = self.jobs.get(output)
            content = (self.spool / "files" / output).read_bytes()
            version = version_of(job.file, content) if job else None
            if job is None or version is None or job.version not in (None, version):
                problems.append(f"files/{output}: its {len(content)} bytes are not what was asked for")
        done = {output_of(path) for path in self.files("done")}
        problems += [f"{output}: done, without a payload" for output in sorted(done - outputs)]
        # A job that was cancelled at the last moment has left its payload.
        problems += [f"files/{output}: nobody's" for output in sorted(outputs - done - self.cancelled - self.perhaps_cancelled)]
        problems += [f"{output}: done, and the hook was not told" for output in sorted(done - told)]
        return problems


def output_of(path: Path) -> str | None:
    """A job's output by its text; None if the text is incomplete, or the file is gone."""
    try:
        found = re.search(r"^output: (.*)\n", path.read_text(errors="surrogateescape"), re.MULTILINE)
    except FileNotFoundError:
        return None
    return found and found[1]
