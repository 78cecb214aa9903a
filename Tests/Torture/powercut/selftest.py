"""Checks that the power cuts find mistakes: workers that are broken on purpose, each of which has to be detected."""

import subprocess
from dataclasses import replace
from pathlib import Path

from cuts import Outcome, Rig

HIDDEN_REBOOT = "length trusted after a cut"
# What is broken, and what a problem that shows it says.
MISTAKES = {
    "no flush of data": ("data", ["wrong:", "there is no payload", "its text is lost", "is lost"]),
    "no flush of directories": ("directories", ["was said to be done"]),
    HIDDEN_REBOOT: ("", ["resumes at"]),
}


def build(work: Path) -> Path:
    library = work / "sabotage.so"
    source = Path(__file__).with_name("sabotage.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], check=True)
    return library


def broken(rig: Rig, library: Path, mistake: str) -> Rig:
    sabotage, _ = MISTAKES[mistake]
    if not sabotage:
        return replace(rig, hides_reboot=True)
    return replace(rig, preload={"LD_PRELOAD": str(library), "SABOTAGE": sabotage})


def is_seen(outcome: Outcome, mistake: str) -> bool:
    said = [problem for problems in outcome.problems.values() for problem in problems]
    return any(sign in problem for problem in said for sign in MISTAKES[mistake][1])
