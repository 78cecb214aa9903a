"""Mistakes that the rig has to find: `--self-test` builds the program with all of them. Each is inactive until PLANT
names it."""

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from batch import Tally

ROOT = Path(__file__).resolve().parents[3]
# The number of trials within which each has to be found.
TRIALS = 2000
TARGETS = ["SpoolWorker", "Transfer"]
SWITCH = """internal import Glibc

func planted(_ name: String) -> Bool { getenv("PLANT").map { String(cString: $0) == name } ?? false }
"""


@dataclass
class Plant:
    module: str
    # A text that occurs once in the module's sources, and its replacement.
    old: str
    new: str
    # The kinds of findings that show it.
    kinds: set[str]
    # Only root can show another boot id.
    needs_root: bool = False


PLANTS = {
    "range-start": Plant(
        "SpoolWorker", "guard first == plan.offset else {", 'guard planted("range-start") || first == plan.offset else {', {"splice", "junk", "cut"}
    ),
    "validator": Plant(
        "SpoolWorker", "return answer.etag == etag ? nil", 'return planted("validator") || answer.etag == etag ? nil', {"splice", "junk"}
    ),
    "resource": Plant(
        "SpoolWorker", "guard isSame || asked.hasDigest", 'guard isSame || planted("resource") || asked.hasDigest', {"splice", "other resource"}
    ),
    "total": Plant(
        "SpoolWorker", "total != size { return .again(.startOver", 'total != size, !planted("total") { return .again(.startOver', {"splice", "junk", "cut"}
    ),
    "multipart": Plant(
        "Transfer", '{ $0.starts(with: "multipart', '{ !planted("multipart") && $0.starts(with: "multipart', {"junk"}
    ),
    "encoding": Plant(
        "Transfer", "filter(Self.isCoding)", 'filter { Self.isCoding($0) && !planted("encoding") }', {"junk"}
    ),
    "replace": Plant(
        "SpoolWorker", "case .dropped: if beside == nil { try discardData()", 'case .dropped: if planted("replace") {} else if beside == nil { try discardData()', {"splice", "junk", "stuck"}
    ),
    "surplus": Plant("SpoolWorker", "if let statedEnd, data.position", 'if let statedEnd, !planted("surplus"), data.position', {"junk"}),
    "tail": Plant("SpoolWorker", "guard floor < end else {", 'guard floor < end, !planted("tail") else {', {"junk"}),
    "other-kind": Plant(
        "SpoolWorker", "if let oddity, !comesAgain", 'if let oddity, !planted("other-kind"), !comesAgain', {"page"}
    ),
    "crc32": Plant(
        "SpoolWorker",
        "    var expected = data.request.expected\n",
        '    var expected = planted("crc32") ? Expectation() : data.request.expected\n',
        {"declared"},
    ),
    "short-body": Plant(
        "Transfer",
        "  guard code == CURLE_OK else {\n    return .failed(connectionFailure",
        '  if planted("short-body"), code == CURLE_PARTIAL_FILE { return .complete }\n'
        "  guard code == CURLE_OK else {\n    return .failed(connectionFailure",
        {"cut", "page", "stuck"},
    ),
    "reboot": Plant("SpoolWorker", "start.boot == boot &&", '(start.boot == boot || planted("reboot")) &&', {"junk", "splice"}, needs_root=True),
    "secret": Plant(
        "SpoolWorker",
        '.with("at", data.part.length).with("url", url))',
        '.with("at", data.part.length).with("url", planted("secret") ? mirror.url : url))',
        {"secret"},
    ),
    "credentials": Plant(
        "Transfer", "if !target.hasSameOrigin(as: origin) {", 'if !target.hasSameOrigin(as: origin), !planted("credentials") {', {"credentials"}
    ),
}


def build(work: Path, plants: dict[str, Plant] = PLANTS, targets: list[str] = TARGETS, *what: str) -> Path:
    """Builds the program, or what else the options say, with all mistakes. Returns the directory of what was built."""
    source = work / "source"
    source.mkdir()
    for name in ("Package.swift", "Package.resolved"):
        shutil.copy2(ROOT / name, source / name)
    for name in ("Sources", "Tests"):
        shutil.copytree(ROOT / name, source / name)
    # The packages that this build has fetched, so that the other needs no network.
    for name in ("checkouts", "repositories", "artifacts", "workspace-state.json"):
        there = next((path for build in (".build", ".build-tested") if (path := ROOT / build / name).exists()), ROOT / ".build" / name)
        if there.is_dir():
            shutil.copytree(there, source / ".build" / name, symlinks=True)
        elif there.exists():
            shutil.copy2(there, source / ".build" / name)
    for name, plant in plants.items():
        texts = {file: file.read_text() for file in (source / "Sources" / plant.module).rglob("*.swift")}
        places = [file for file, text in texts.items() if plant.old in text]
        if len(places) != 1 or texts[places[0]].count(plant.old) != 1:
            raise SystemExit(f"random: the mistake {name} must fit in one place, but {plant.module} has {plant.old!r} in {len(places)} files")
        places[0].write_text(texts[places[0]].replace(plant.old, plant.new))
    for target in targets:
        (source / "Sources" / target / "Planted.swift").write_text(SWITCH)
    what = what or ("--product=spoolrun",)
    command = ["swift", "build", *what, "--disable-automatic-resolution", "--skip-update"]
    built = subprocess.run(command, cwd=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if built.returncode != 0:
        raise SystemExit(f"random: the program with the mistakes does not build:\n{built.stdout[-3000:]}")
    return source / ".build" / ("release" if "release" in what else "debug")


def self_test(options: argparse.Namespace, play: Callable[[argparse.Namespace], tuple[Tally, dict[str, int]]]) -> int:
    """play: returns the numbers of findings by kind."""
    missed = 0
    options.trials = TRIALS
    with tempfile.TemporaryDirectory(prefix="random-") as work:
        options.program = options.program.resolve() if options.program else build(Path(work)) / "spoolrun"
        for name, plant in {"": None, **PLANTS}.items():
            os.environ["PLANT"] = name
            options.until = plant.kinds if plant else set()
            options.shows = plant is None
            total, found = play(options)
            if plant is None:
                # Without a mistake there must be no finding.
                print("ok    " if not found else "FAILED", f" no plant: {total.trials} trials, {found}", flush=True)
                missed += bool(found)
            elif plant.needs_root and not total.events["power cut"]:
                print(f"left out {name}: only root can show another boot id", flush=True)
            else:
                seen = {kind: count for kind, count in found.items() if kind in plant.kinds}
                print("seen  " if seen else "MISSED", f" {name}: {total.trials} trials, {seen or found}", flush=True)
                missed += not seen
    return 1 if missed else 0
