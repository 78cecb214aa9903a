"""Mistakes that the simulated world (TESTING.md) has to find, and how soon it does. Each is inactive until PLANT names it."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "Tests/Torture/random"))

from plants import Plant, build  # noqa: E402

# Within so many seconds each has to be found.
LIMIT = 600
PLANTS = {
    name: Plant("Spool", old, new, set())
    for name, (old, new) in {
        "a drop's name is not made durable": (
            "        try flush(target.directory).run()",
            '        if !planted("a drop\'s name is not made durable") { try flush(target.directory).run() }',
        ),
        "a drop's text is not made durable": (
            "      try file.fsync()\n      let target = try enter(\n",
            '      if !planted("a drop\'s text is not made durable") { try file.fsync() }\n      let target = try enter(\n',
        ),
        "a move replaces": (
            "    do throws(SpoolError) {\n      try system.renameNoReplace(directory ?? root, from, to)",
            '    do throws(SpoolError) {\n      if planted("a move replaces") { return try system.rename(directory ?? root, from, to) }\n'
            "      try system.renameNoReplace(directory ?? root, from, to)",
        ),
        "a claim's lock is ignored": (
            "    let isFree = try file.lock()\n    // Under",
            '    let isFree = try file.lock() || planted("a claim\'s lock is ignored")\n    // Under',
        ),
        "a claim replaces another of this worker": (
            "    if namesInHand.contains(name) { return true }\n    return try status(.cur, name) != nil",
            '    if planted("a claim replaces another of this worker") { return false }\n'
            "    if namesInHand.contains(name) { return true }\n    return try status(.cur, name) != nil",
        ),
        "a claim takes whatever has the name now": (
            "      found.isSameFile(as: candidate.status)\n    else {",
            '      planted("a claim takes whatever has the name now") || found.isSameFile(as: candidate.status)\n    else {',
        ),
        "a claim is opened for writing by its name alone": (
            "    guard status.isSameFile(as: locked.status), status.size == locked.status.size else { return false }",
            '    guard planted("a claim is opened for writing by its name alone")\n'
            "      || status.isSameFile(as: locked.status) && status.size == locked.status.size else { return false }",
        ),
        "a file that lacks its end is judged at once": (
            "      if origin.isDroppedInto, Self.isYoung",
            '      if origin.isDroppedInto, !planted("a file that lacks its end is judged at once"), Self.isYoung',
        ),
        "an edit does not look at what it has exchanged": (
            "    if try system.status(root, draft).isSameFile(as: file) { return }",
            '    if planted("an edit does not look at what it has exchanged") { return }\n'
            "    if try system.status(root, draft).isSameFile(as: file) { return }",
        ),
        "an edit does not look at what it has locked": (
            "    guard now.isSameFile(as: found), now.size == found.size else { throw Self.hasMoved(place) }",
            '    guard planted("an edit does not look at what it has locked")\n'
            "      || now.isSameFile(as: found) && now.size == found.size else { throw Self.hasMoved(place) }",
        ),
        "an edit's text is not made durable": (
            "    try fresh.fsync()\n",
            '    if !planted("an edit\'s text is not made durable") { try fresh.fsync() }\n',
        ),
        "a failed drop leaves its job": (
            "      try? removeDouble(file.path, of: status)\n      throw error.ofSpace",
            '      if !planted("a failed drop leaves its job") { try? removeDouble(file.path, of: status) }\n      throw error.ofSpace',
        ),
        "hold and release replace": (
            "{ () throws(SpoolError) in try moveNoReplace(place.path, target.path) }",
            '{ () throws(SpoolError) in\n      if planted("hold and release replace") { return try system.rename(root, place.path, target.path) }\n'
            "      try moveNoReplace(place.path, target.path)\n    }",
        ),
    }.items()
}


def play(built: Path, plant: str, seconds: int) -> tuple[int, str]:
    """Plays seeds. Returns how many, and the problem of the last one; an empty text for none."""
    environment = os.environ | {"PLANT": plant, "SIMULATE": "1-1000000", "SIMULATE_SECONDS": str(seconds)}
    command = [built / "spoolrunPackageTests.xctest", "--testing-library", "swift-testing", "--filter", "^SimulationTests"]
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    seeds = re.search(r"simulation: (\d+) seeds", said)
    problem = re.search(r'outcome\.problems → \["(.*?)"[],]', said)
    if not seeds:
        raise SystemExit(f"simulation: the tests do not run:\n{said[-3000:]}")
    return int(seeds[1]), problem[1] if problem else ""


def main() -> int:
    missed = 0
    with tempfile.TemporaryDirectory(prefix="simulation-") as work:
        built = build(Path(work), PLANTS, ["Spool"], "--build-tests")
        print("| mistake | seeds | seconds | seen as |\n|---|---|---|---|")
        for plant in ["", *PLANTS]:
            start = time.monotonic()
            seeds, problem = play(built, plant, LIMIT if plant else 60)
            missed += bool(problem) != bool(plant)
            seen = problem or ("MISSED" if plant else "–")
            print(f"| {plant or 'none'} | {seeds} | {time.monotonic() - start:.0f} | {seen} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
