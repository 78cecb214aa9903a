"""Mistakes that the simulated world (docs/TESTING.md) has to find, and how soon it does. Each is inactive until PLANT names it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "Tests/Torture/random"))

from plants import PLANTS as OF_RANDOM, Plant, build  # noqa: E402

# Within so many seconds of CPU each has to be found.
LIMIT = 600
OPTIMISED = ["--product=spoolrunPackageTests", "-c", "release", "-Xswiftc", "-enable-testing"]
# Files of which `--coverage` tells what seeds do not reach: those that have one of these.
DECISIONS = re.compile(r"^(?:package )?(?:struct Recovery|enum ResponseVerdict|enum Ending|struct TailDoubt|enum RetryDecision)\b|func take\(_ name: FileName, from origin", re.M)
# The tests that play.
CLAIMS = "no.claim"
WHOLE = "whole"
LISTS = "becomes.one.job"

SPOOL = {
        "a drop's name is not made durable": (
            "        try spool.flush(target.directory).run()",
            '        if !planted("a drop\'s name is not made durable") { try spool.flush(target.directory).run() }',
        ),
        "a drop's text is not made durable": (
            "      try file.fsync()\n      let target",
            '      if !planted("a drop\'s text is not made durable") { try file.fsync() }\n      let target',
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
            "    if spool.namesInHand.withLock({ $0.contains(name) }) { return true }\n    return try spool.status(.cur, name) != nil",
            '    if planted("a claim replaces another of this worker") { return false }\n'
            "    if spool.namesInHand.withLock({ $0.contains(name) }) { return true }\n    return try spool.status(.cur, name) != nil",
        ),
        "a claim takes whatever has the name now": (
            "      found.isSameFile(as: candidate.status), found",
            '      planted("a claim takes whatever has the name now") || found.isSameFile(as: candidate.status), found',
        ),
        "a claim overlooks half a move": (
            " found.links <= candidate.status.links\n    else {",
            ' planted("a claim overlooks half a move") || found.links <= candidate.status.links\n    else {',
        ),
        "a claim is opened for writing by its name alone": (
            "    guard status.isSameFile(as: locked.status), status.size == locked.status.size, status",
            '    guard planted("a claim is opened for writing by its name alone")\n'
            "      || status.isSameFile(as: locked.status) && status.size == locked.status.size, status",
        ),
        "a file that lacks its end is judged at once": (
            "      if origin.takesDrops, status.isYoung",
            '      if origin.takesDrops, !planted("a file that lacks its end is judged at once"), status.isYoung',
        ),
        "an edit does not look at what it has exchanged": (
            "    if isMovedByNobody(taken, file) { return }",
            '    if planted("an edit does not look at what it has exchanged") || isMovedByNobody(taken, file) { return }',
        ),
        "an edit does not look at what it has locked": (
            "    guard now.isSameFile(as: found), now.size == found.size,\n      try",
            '    guard planted("an edit does not look at what it has locked") || now.isSameFile(as: found) && now.size == found.size,\n      try',
        ),
        "an edit's text is not made durable": (
            "    try fresh.fsync()\n",
            '    if !planted("an edit\'s text is not made durable") { try fresh.fsync() }\n',
        ),
        "a failed drop leaves its job": (
            "      _ = try? spool.remove(file.path, of: status)\n      throw error.ofSpace",
            '      if !planted("a failed drop leaves its job") { _ = try? spool.remove(file.path, of: status) }\n      throw error.ofSpace',
        ),
        "hold and release replace": (
            "{ () throws(SpoolError) in try spool.moveNoReplace(place.path, target.path) }",
            '{ () throws(SpoolError) in\n      if planted("hold and release replace") { return try spool.system.rename(spool.root, place.path, target.path) }\n'
            "      try spool.moveNoReplace(place.path, target.path)\n    }",
        ),
        "a claim's lease is ignored": (
            "    if origin == .cur, !isNamed, let end = try Leases(spool).endOfLease(source, file.status(), now: now) {",
            '    if !planted("a claim\'s lease is ignored"), origin == .cur, !isNamed,\n      let end = try Leases(spool).endOfLease(source, file.status(), now: now)\n    {',
        ),
        "half a move is taken for a whole one": (
            "    if status.links > 1 {\n      guard try JobMoves(spool).completeInterruptedMove",
            '    if status.links > 1, !planted("half a move is taken for a whole one") {\n      guard try JobMoves(spool).completeInterruptedMove',
        ),
        "a copy replaces what has the claim's name": (
            "      try spool.system.exchange(spool.root, copy, path)\n      let old",
            '      if planted("a copy replaces what has the claim\'s name") { return try spool.system.rename(spool.root, copy, path) }\n'
            "      try spool.system.exchange(spool.root, copy, path)\n      let old",
        ),
        "a claim is replaced without a look whether it was moved": (
            "      try spool.system.rename(spool.root, draft, claim)\n",
            "      try spool.system.rename(spool.root, draft, claim)\n"
            '      if planted("a claim is replaced without a look whether it was moved") { return }\n',
        ),
        "a copy has no lock": (
            "      _ = try fresh.lock()\n      let status = try fresh.status()\n      try fresh.fdatasync()",
            '      if !planted("a copy has no lock") { _ = try fresh.lock() }\n'
            "      let status = try fresh.status()\n      try fresh.fdatasync()",
        ),
        "a copy's former names are not flushed": (
            "      try spool.flushFormerNames(.cur, from: origin == .cur ? nil : origin)",
            '      if !planted("a copy\'s former names are not flushed") { try spool.flushFormerNames(.cur, from: origin == .cur ? nil : origin) }',
        ),
        "a copy's drop may come back": (
            "each == origin || origin?.takesNewJobs != true && each.takesNewJobs",
            'each == origin || !planted("a copy\'s drop may come back") && origin?.takesNewJobs != true && each.takesNewJobs',
        ),
        "a move removes what has its new name now": (
            "      goes = try system.status(root, former).isSameFile(as: job)",
            '      goes = planted("a move removes what has its new name now") ? true : try system.status(root, former).isSameFile(as: job)',
        ),
        "a late drop counts as a move": (
            "    if isDouble, try !hasOtherName(job, than: path, kept: kept) { return false }",
            '    let isDouble = isDouble && !planted("a late drop counts as a move")\n    if isDouble, try !hasOtherName(job, than: path, kept: kept) { return false }',
        ),
        "two who move a job both remove their name": (
            "    if goes, isDouble { goes = try hasOtherName(job, than: path, kept: kept) }",
            '    if goes, isDouble, !planted("two who move a job both remove their name") { goes = try hasOtherName(job, than: path, kept: kept) }',
        ),
        "two jobs have one name": (
            "      if !candidate.isNamed, try JobSearch(spool).isTaken(candidate.job, source) || isOfEntry(candidate) {",
            '      if !candidate.isNamed, !planted("two jobs have one name"), try JobSearch(spool).isTaken(candidate.job, source) || isOfEntry(candidate) {',
        ),
}
WORKER = {
        "validator": (
            "return answer.etag == etag ? nil", 'return planted("validator") || answer.etag == etag ? nil',
        ),
        "another range": (
            "    guard first == plan.offset else {", '    guard planted("another range") || first == plan.offset else {',
        ),
        "surplus": ("if let statedEnd, data.position", 'if let statedEnd, !planted("surplus"), data.position'),
        "surplus of a piece": (
            "    if position > statedEnd {", '    if position > statedEnd, !planted("surplus of a piece") {',
        ),
        "tail": ("guard floor < end else {", 'guard floor < end, !planted("tail") else {'),
        "replace": ("case .dropped: if beside == nil { try discardData()", 'case .dropped: if planted("replace") {} else if beside == nil { try discardData()'),
        "new data is not beside the old": (
            "    case .kept: try beginBeside()", '    case .kept: if !planted("new data is not beside the old") { try beginBeside() }',
        ),
        "other-kind": ("if let oddity, !comesAgain", 'if let oddity, !planted("other-kind"), !comesAgain'),
        "a confirmed length": (
        "    guard size == plan.offset else { return .again(.startOver",
        '    if planted("a confirmed length") { return .complete }\n    guard size == plan.offset else { return .again(.startOver',
    ),
    "a cut is taken for the end": (
            "    case .failed(let failure): return try next(failed(mirror.failure",
            '    case .failed where planted("a cut is taken for the end"): return false\n'
            "    case .failed(let failure): return try next(failed(mirror.failure",
        ),
        "declared digest": (
            "    var expected = data.request.expected\n",
            '    var expected = planted("declared digest") ? Expectation() : data.request.expected\n',
        ),
        "reboot": ("start.boot == boot &&", '(start.boot == boot || planted("reboot")) &&'),
        "a payload is not durable": (
            "    try await part.makeDurable(durable)\n    let verified",
            '    if !planted("a payload is not durable") { try await part.makeDurable(durable) }\n    let verified',
        ),
        "a payload's name is not durable": (
            "    try await durable(place.unsynced)", '    if !planted("a payload\'s name is not durable") { try await durable(place.unsynced) }',
        ),
        "a receipt is not durable": (
            "    try await claim.makeDurable(durable)\n    try claim.confirmAfterSilence()\n    // Before the move",
            '    if !planted("a receipt is not durable") { try await claim.makeDurable(durable) }\n'
            "    try claim.confirmAfterSilence()\n    // Before the move",
        ),
        "a checkpoint without a flush": (
            "        try flush.run()\n        if mark.offset > kept", '        if !planted("a checkpoint without a flush") { try flush.run() }\n        if mark.offset > kept',
        ),
        "a checkpoint of data that is gone": (
            "    guard data.generation == generation else { return }",
            '    guard planted("a checkpoint of data that is gone") || data.generation == generation else { return }',
        ),
        "data of a sleeping worker is continued in place": (
            "    if recovery.needsNewInode || part.isShared {",
            '    if recovery.needsNewInode, !planted("data of a sleeping worker is continued in place") {',
        ),
        "doubtful data is not written again": (
            "    if isDoubtful { recovery.rewritesFrom = mark.offset }",
            '    if isDoubtful, !planted("doubtful data is not written again") { recovery.rewritesFrom = mark.offset }',
        ),
        "lost writes are forgotten": (
            "do { try await self([flush]) } catch let error as SpoolError { throw LostWrites(error) }",
            "do { try await self([flush]) } catch let error as SpoolError {\n"
            '      if !planted("lost writes are forgotten") { throw LostWrites(error) }\n    }',
        ),
        "a doubt is forgotten": (
            "    doubt = known.brokenFrom.flatMap { TailDoubt",
            '    doubt = planted("a doubt is forgotten") ? nil : known.brokenFrom.flatMap { TailDoubt',
        ),
        "the noted end of the data is forgotten": (
            "    let length = min(length, journal.data.end ?? length)",
            '    let length = planted("the noted end of the data is forgotten") ? length : min(length, journal.data.end ?? length)',
        ),
        "a piece that broke off": (
            "        chunks[chunk].brokenFrom = isBroken ? request.lowerBound : nil",
            '        chunks[chunk].brokenFrom = isBroken && !planted("a piece that broke off") ? request.lowerBound : nil',
        ),
        "two answers are not compared": (
            "    if !known.isEmpty, try !agrees", '    if !known.isEmpty, !planted("two answers are not compared"), try !agrees',
        ),
        "an answer that breaks off alike": (
            "    if isBroken { self.doubt?.endAlike() } else { self.doubt = nil }",
            '    if isBroken, !planted("an answer that breaks off alike") { self.doubt?.endAlike() } else { self.doubt = nil }',
        ),
        "a discarded checkpoint counts": (
            "    if let durable = marks.durable, durable.offset > offset {",
            '    if !planted("a discarded checkpoint counts"), let durable = marks.durable, durable.offset > offset {',
        ),
        "a foreign file is trusted": (
            "      (recovery.verifies, recovery.confirmation) = (mark, nil)",
            '      if !planted("a foreign file is trusted") { (recovery.verifies, recovery.confirmation) = (mark, nil) }',
        ),
        "what is claimed is not what was looked at": (
            "        if text.request.urls != choice.peek.urls {", '        if text.request.urls != choice.peek.urls, !planted("what is claimed is not what was looked at") {',
        ),
        "a delivery is repeated after its receipt": (
            "    if !mayHaveReceipt || journal", '    if planted("a delivery is repeated after its receipt") || !mayHaveReceipt || journal',
        ),
        "a refused delivery counts": (
            "      case .yes: return claim.spool.now()\n",
            '      case .yes: return claim.spool.now()\n      case .no where planted("a refused delivery counts"): return claim.spool.now()\n',
        ),
        "a job is done before its delivery": (
            "    guard hooks.has(.deliver) else { return nil }",
            '    guard hooks.has(.deliver), !planted("a job is done before its delivery") else { return nil }',
        ),
        "what is delivered is not durably noted": (
            "    try await claim.makeDurable(environment.durable)\n    log(Event(\"published\"",
            '    if !planted("what is delivered is not durably noted") { try await claim.makeDurable(environment.durable) }\n'
            "    log(Event(\"published\"",
        ),
        "a closed gate is ignored": (
            "gateAnswer != .yes || isGateAnswerOld { return false }",
            '!planted("a closed gate is ignored"), gateAnswer != .yes || isGateAnswerOld { return false }',
        ),
        "what waits is told as given up": (
            "    guard let retry = record.retry else {\n      if isNews",
            '    if planted("what waits is told as given up") { await tellGivenUp(job, record.facts) }\n'
            "    guard let retry = record.retry else {\n      if isNews",
        ),
        "what a hook rejects is published": (
            "    if case .no(let reason) = answer { throw",
            '    if case .no(let reason) = answer, !planted("what a hook rejects is published") { throw',
        ),
        "links of a failed hook are used": (
            "    case .exited(0): return outcome.answer\n",
            '    case .exited where planted("links of a failed hook are used"): return outcome.answer\n'
            "    case .exited(0): return outcome.answer\n",
        ),
        "other workers' transfers do not count": (
            "    return isTaken ?? true ? nil : (Self.pause, false)",
            '    return isTaken ?? true || planted("other workers\' transfers do not count") ? nil : (Self.pause, false)',
        ),
}
# Those that the play of a list has to find.
SPOOL_LISTS = {
        "an entry is dropped again after a crash": (
            "    for job in jobs where try !hasJob(job.text, job.name)",
            '    for job in jobs where try !hasJob(job.text, job.name) || planted("an entry is dropped again after a crash")',
        ),
}
WORKER_LISTS = {
        "an entry is noted whose job is not there": (
            "    let dropped = try Drops(spool).dropMissing(texts, confirm: confirm)",
            "    let dropped: Int\n    do throws(SpoolError) { dropped = try Drops(spool).dropMissing(texts, confirm: confirm) } catch {\n"
            '      if !planted("an entry is noted whose job is not there") { throw error }\n      dropped = 0\n    }',
        ),
        "a part of a list counts as the list": (
            "    case .exited(0): break\n    case .stopped",
            '    case .signalled where planted("a part of a list counts as the list"): break\n    case .exited(0): break\n    case .stopped',
        ),
}
# The play of whole workers finds these.
SPOOL_CHILDREN = {
        "a clock that was set makes heartbeats old": (
            "  package var areBeatsLate: Bool { Host",
            '  package var areBeatsLate: Bool { !planted("a clock that was set makes heartbeats old") && Host',
        ),
        "a child keeps a lock": (
            "    if lock != nil { _ = kernel.lock(number, LOCK_UN) }\n    _ = kernel.close",
            '    if lock != nil, !planted("a child keeps a lock") { _ = kernel.lock(number, LOCK_UN) }\n    _ = kernel.close',
        ),
}
PLANTS = {
    name: Plant(module, old, new, set())
    for module, plants in (
        ("Spool", SPOOL | SPOOL_CHILDREN | SPOOL_LISTS),
        ("SpoolWorker", WORKER | WORKER_LISTS),
    )
    for name, (old, new) in plants.items()
}


def play_of(plant: str) -> str:
    """The one that has to find it."""
    if plant in SPOOL_LISTS | WORKER_LISTS:
        return LISTS
    # These show without transfers.
    return CLAIMS if plant in SPOOL else WHOLE


def command(built: Path, what: str) -> list[str]:
    return [str(built / "spoolrunPackageTests.xctest"), "--testing-library", "swift-testing", "--filter", f"SimulationTests.*{what}"]


def is_of(built: Path, plant: str, seed: str) -> bool:
    """Whether a seed finds nothing without the mistake."""
    environment = os.environ | {"PLANT": "", "SIMULATE": seed}
    what = command(built, play_of(plant))
    return subprocess.run(what, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600).returncode == 0


def play(built: Path, plant: str, seconds: int) -> tuple[str, str]:
    """Plays seeds for so long by CPU. Returns what that took, and the problem of the last one; an empty text for none."""
    environment = os.environ | {"PLANT": plant, "SIMULATE": "1-10000000", "SIMULATE_SECONDS": str(seconds)}
    try:
        ended = subprocess.run(
            command(built, play_of(plant)),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=10 * seconds + 400,
        )
    except subprocess.TimeoutExpired:
        return "–", "does not end"
    seeds = re.search(r"simulation: (\d+) seeds, .*?([\d.]+) s of CPU", ended.stdout)
    problem = re.search(r'outcome\.problems → \["(.*?)"[],]', ended.stdout)
    if seeds:
        if plant and problem and not is_of(built, plant, seeds[1]):
            return f"seed {seeds[1]} finds a fault of its own", ""
        return f"{seeds[1]} seeds, {float(seeds[2]):.0f} s", problem[1] if problem else ""
    # A mistake may well have the program stop at one of its own checks, or a seed go on for ever.
    crash = re.search(r"(?:Fatal error|error:|Simulation of seed).*", ended.stdout)
    if ended.returncode in (0, 1) or not plant:
        raise SystemExit(f"simulation: the tests do not run:\n{ended.stdout[-3000:]}")
    return "–", crash[0] if crash else f"status {ended.returncode}"


def night(hours: float) -> int:
    """Plays new seeds of two plays at a time, one process for each, and prints what is found."""
    ends = time.monotonic() + hours * 3600
    with tempfile.TemporaryDirectory(prefix="simulation-") as work:
        built = build(Path(work), {}, [], *OPTIMISED)
        cores = sorted(os.sched_getaffinity(0))
        turn, seed, lives, cpu, found = 0, int(time.time()) * 1_000_000, dict.fromkeys((CLAIMS, WHOLE, LISTS), 0), 0.0, 0
        while time.monotonic() < ends:
            running = []
            turn += 1
            for what in (WHOLE, LISTS if turn % 4 == 0 else CLAIMS):
                seconds = max(1, min(900, int(ends - time.monotonic())))
                environment = os.environ | {"SIMULATE": f"{seed}-{seed + 999_999_999}", "SIMULATE_SECONDS": str(seconds)}
                play = subprocess.Popen(command(built, what), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                # Its threads take turns, sooner on one core.
                os.sched_setaffinity(play.pid, {cores[len(running) % len(cores)]})
                running.append((what, play))
                seed += 1_000_000_000
            for what, process in running:
                said = process.communicate(timeout=9000)[0].decode(errors="replace")
                counts = re.search(r"(\d+) jobs, \d+ calls, ([\d.]+) s", said)
                if counts:
                    lives[what] += int(counts[1])
                    cpu += float(counts[2])
                if process.returncode != 0:
                    found += 1
                    print(said[-6000:], flush=True)
            told = f"{lives[WHOLE]} lives with whole workers, {lives[CLAIMS]} of claims, {lives[LISTS]} of lists, {cpu:.0f} s of CPU, {found} findings"
            print(f"simulation: {told}", flush=True)
    return 1 if found else 0


def tool(name: str) -> str:
    """One of the toolchain's own: another version cannot read what its programs write."""
    return str(Path(shutil.which("swift") or "swift").resolve().parent / name)


def coverage(seconds: int) -> int:
    """Plays seeds of all plays, and prints how often lines of the decisions were seen, and those that never were."""
    scratch = ROOT / ".build/simulation-coverage"
    options = ["--product=spoolrunPackageTests", "--enable-code-coverage", "--scratch-path", str(scratch)]
    subprocess.run(["swift", "build", *options], cwd=ROOT, check=True)
    built = scratch / "debug"
    with tempfile.TemporaryDirectory(prefix="simulation-") as work:
        for what in (CLAIMS, WHOLE, LISTS):
            environment = os.environ | {"SIMULATE": "1-10000000", "SIMULATE_SECONDS": str(seconds), "LLVM_PROFILE_FILE": f"{work}/{what}.profraw"}
            subprocess.run(command(built, what), env=environment, check=True, stdout=subprocess.DEVNULL, timeout=10 * seconds + 600)
        merged = f"{work}/merged"
        subprocess.run([tool("llvm-profdata"), "merge", "-o", merged, *(f"{work}/{what}.profraw" for what in (CLAIMS, WHOLE, LISTS))], check=True)
        show = [tool("llvm-cov"), "show", str(built / "spoolrunPackageTests.xctest"), f"-instr-profile={merged}"]
        for module in ("Spool", "SpoolWorker"):
            for file in sorted((ROOT / "Sources" / module).rglob("*.swift")):
                if not DECISIONS.search(file.read_text()):
                    continue
                said = subprocess.run([*show, str(file)], check=True, stdout=subprocess.PIPE, text=True, errors="replace").stdout
                lines = re.findall(r"^ *(\d+)\| *([\d.]+[kMG]?)\|(.*)$", said, re.M)
                never = [(number, text) for number, count, text in lines if count == "0"]
                print(f"{file.relative_to(ROOT)}: {len(lines)} lines, {len(never)} never seen")
                for number, text in never:
                    print(f"  {number}: {text.strip()}")
    return 0


def check() -> int:
    """Whether each mistake, also of the random rig, still fits in one place."""
    bad = 0
    for name, plant in (PLANTS | OF_RANDOM).items():
        texts = [file.read_text() for file in (ROOT / "Sources" / plant.module).rglob("*.swift")]
        if sum(text.count(plant.old) for text in texts) != 1:
            print(f"simulation: the mistake {name!r} must fit in one place", file=sys.stderr)
            bad += 1
    return 1 if bad else 0


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        return check()
    os.environ["SPOOLRUN_TESTS"] = "simulation"
    if sys.argv[1:2] == ["--coverage"]:
        return coverage(int(sys.argv[2]))
    if sys.argv[1:2] == ["--night"]:
        return night(float(sys.argv[2]))
    missed = 0
    wanted = sys.argv[1:] or ["", *PLANTS]
    with tempfile.TemporaryDirectory(prefix="simulation-") as work:
        built = build(Path(work), PLANTS, ["Spool", "SpoolWorker"], *OPTIMISED)
        print("| mistake | took | seen as |\n|---|---|---|")
        for plant in wanted:
            took, problem = play(built, plant, LIMIT if plant else 60)
            missed += bool(problem) != bool(plant)
            seen = problem or ("MISSED" if plant else "–")
            print(f"| {plant or 'none'} | {took} | {seen} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
