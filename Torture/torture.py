"""All of it, one part after the other, and at the end a table of what each part was tried with and what came of it. A part that fails
does not keep the next from its turn: `make torture`."""

import argparse
import re
import subprocess
import sys
import time
from dataclasses import dataclass

# Targets of the Makefile, and which lines of what they print say fault, cases and outcome.
PARTS = {
    "model": r"(ok|FAILED) ",
    "sanitize": r".*Test run with",
    "fuzz": r"\w+ +(\d+ runs|FAILED)",
    "peers": r"\w+: \d+ ",
    "crowd": r"SIG|another version|server stopped|\d+ of \d+ jobs",
    "pairs": r"crash matrix: pairs",
    "soak": r" *\d+  |\d+ jobs: |\d+ looks at rest",
    "powercut": r"(ok|FAILED|seen|MISSED) ",
}


@dataclass
class Outcome:
    part: str
    status: int
    minutes: float
    rows: list[str]


def play(part: str) -> Outcome:
    """Runs a part, lets all that it prints through, and keeps the rows of the table."""
    begun = time.monotonic()
    rows = []
    with subprocess.Popen(["make", "--no-print-directory", part], stdout=subprocess.PIPE, text=True, errors="replace") as process:
        for line in process.stdout:
            print(line, end="", flush=True)
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
    outcomes = [play(part) for part in options.parts or PARTS]
    print()
    for outcome in outcomes:
        verdict = "ok" if outcome.status == 0 else "FAILED"
        print(f"{outcome.part:10} {verdict:6} {outcome.minutes:6.1f} min")
        for row in outcome.rows:
            print(f"    {row}")
    return 1 if any(outcome.status for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
