"""Runs all rigs: `make torture`. At the end it prints a table of what each rig tried and found. The soak mostly waits,
so it runs beside the others, which run one after the other. If a rig fails, the next one runs all the same."""

import argparse
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

# Targets of the Makefile, and the lines of their output that have the fault, the number of cases and the outcome.
PARTS = {
    "model": r"(ok|FAILED) ",
    "sanitize": r".*Test run with",
    "fuzz": r"\w+ +(\d+ runs|FAILED)",
    "peers": r"\w+: \d+ ",
    "realservers": r".*(PROBLEM|LEFT OUT)|\d+ scenarios at",
    "gestures": r"\d+ gestures in ",
    "deb-test": r"[\w ]+: (ok|FAILED|LEFT OUT) ",
    "crowd": r"SIG|another version|server stopped|\d+ of \d+ jobs",
    "crowd-apart": r"SIG|another version|server stopped|\d+ of \d+ jobs",
    "hosts": r"[^:]+: (LEFT OUT|doctor|drop|clock|worker|host|mount|\d+ jobs)",
    "random": r" *\d+  |\d+ trials",
    "random-self-test": r"(seen|MISSED|ok|FAILED) ",
    "simulate-night": r"simulation: |✘",
    "simulate-self-test": r"\| ",
    "matrix": r"crash matrix: ",
    "pairs": r"crash matrix: pairs",
    "powercut": r"(ok|FAILED|seen|MISSED) ",
    "powercut-uml": r"(ok|FAILED|seen|MISSED) ",
    "soak-self-test": r"(seen|MISSED) ",
    "soak": r" *\d+  |\d+ jobs: |\d+ looks at rest",
}
BESIDE = "soak"
# More than when it runs alone.
VARIABLES = {"random": ["TRIALS=100000"], "simulate-night": ["HOURS=1"]}


@dataclass
class Outcome:
    part: str
    status: int
    minutes: float
    rows: list[str]

    @property
    def verdict(self) -> str:
        if self.status != 0:
            return "FAILED"
        # Without root or loop devices, a rig says so and does nothing.
        return "ok" if self.rows else "LEFT OUT"


def play(part: str) -> Outcome:
    """Runs a rig, prints its output under its name, and keeps its rows of the table."""
    begun = time.monotonic()
    rows = []
    with subprocess.Popen(["make", "--no-print-directory", part, *VARIABLES.get(part, [])], stdout=subprocess.PIPE, text=True, errors="replace") as process:
        for line in process.stdout:
            print(f"{part}: {line}", end="", flush=True)
            if re.match(PARTS[part], line):
                rows.append(line.rstrip())
    return Outcome(part, process.returncode, (time.monotonic() - begun) / 60, rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"there is no part {part}")
    parts = options.parts or list(PARTS)
    # Otherwise both would build it at the same time.
    subprocess.run(["make", "--no-print-directory", "setup", "all"], check=True)
    with ThreadPoolExecutor() as pool:
        beside = [pool.submit(play, part) for part in parts if part == BESIDE]
        outcomes = [play(part) for part in parts if part != BESIDE] + [future.result() for future in beside]
    print()
    for outcome in outcomes:
        print(f"{outcome.part:14} {outcome.verdict:8} {outcome.minutes:6.1f} min")
        for row in outcome.rows:
            print(f"    {row}")
    return 0 if all(outcome.verdict == "ok" for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
