"""Cuts the power to spoolrun's disk: `make powercut`. Needs root, because it mounts disk images."""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cuts
import selftest
import uml
from cuts import Outcome, Rig
from disks import KINDS, Kind, Store
from fulldisks import FAULTS, disk_fault
from jobs import serve_jobs
from server import Server
from shutdowns import shutdowns

# Set in the namespace that has the mounts: they end with it, even if this program dies.
INSIDE = "SPOOLRUN_TORTURE_INSIDE"
# Space for the images.
LEAST_ROOM = 3 << 30
# One of the kinds: disks that are full, or fail.
FULL_DISKS = "full-disks"
# A shutdown takes this much longer than a copy, so there is one for this number of cuts.
SHUTDOWN_EACH = 10
SELF_TEST_RUNS = 4


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="Tests/Torture/powercut", description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the spoolrun to torture")
    parser.add_argument("--cuts", type=int, default=100, help="for each file system, at least; default: %(default)s")
    parser.add_argument("--kinds", type=lambda text: text.split(","), help=f"comma-separated, of: {', '.join([*KINDS, FULL_DISKS])}; default: all")
    parser.add_argument("--interval", type=float, default=0.15, help="seconds between cuts; default: %(default)s")
    parser.add_argument("--small", type=int, default=100, help="small jobs in each run; default: %(default)s")
    parser.add_argument("--self-test", action="store_true", help="break the worker on purpose instead, and see whether that is found")
    parser.add_argument("--uml", action="store_true", help="kill a User-Mode Linux during a run instead of copying the disk")
    parser.add_argument("--seed", type=int, help="draws the sizes of files; default: another each time")
    parser.add_argument("--scratch", type=Path, help="where the images go; default: /dev/shm if there is enough space, otherwise /tmp")
    options = parser.parse_args()
    if not options.program.is_file():
        parser.error(f"no program {options.program}: make")
    options.program = options.program.resolve()
    known = [*KINDS] if options.self_test or options.uml else [*KINDS, FULL_DISKS]
    options.kinds = options.kinds or known
    if unknown := [kind for kind in options.kinds if kind not in known]:
        parser.error(f"no kinds {', '.join(unknown)}; there are {', '.join(known)}")
    return options


def obstacle(options: argparse.Namespace) -> str | None:
    if os.geteuid() != 0:
        return "not root, who alone may mount disk images"
    if not Path("/dev/loop-control").exists():
        return "this machine has no loop devices"
    known = Path("/proc/filesystems").read_text().split()
    for name in ["xfs", "ext4", "btrfs"]:
        if name not in known and os.system(f"modprobe -q {name}") != 0:
            return f"this kernel has no {name}"
    return uml.obstacle() if options.uml else None


def enter_namespace() -> None:
    if INSIDE in os.environ:
        return
    os.environ[INSIDE] = "1"
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-B", *sys.argv]
    os.execvp(command[0], command)


def scratch_parent(options: argparse.Namespace) -> Path:
    if options.scratch is not None:
        return options.scratch
    memory = Path("/dev/shm")
    # The other machine has its own /dev.
    if not options.uml and memory.is_dir() and shutil.disk_usage(memory).free >= LEAST_ROOM:
        return memory
    return Path(tempfile.gettempdir())


def is_green(fault: str, attack: Callable[[], Outcome]) -> bool:
    """Prints one line about it, and the problems."""
    began = time.monotonic()
    outcome = attack()
    zeros = f", {outcome.zeroed} of zeros (up to {outcome.most_zeros} bytes)" if outcome.zeroed else ""
    states = " ".join(f"{state}:{count}" for state, count in sorted(outcome.states.items()))
    verdict = "FAILED" if outcome.problems else "ok"
    print(
        f"{verdict:6}  {fault:26}  {outcome.cuts:5} cuts  {len(outcome.problems):4} with problems"
        f"  {outcome.unearned:4} with unearned data{zeros}  {time.monotonic() - began:5.0f} s  {states}{outcome.said}",
        flush=True,
    )
    for label, problems in list(outcome.problems.items())[:5]:
        print(f"        {label}", *problems[:8], sep="\n            ", flush=True)
    return not outcome.problems


def is_seen(rig: Rig, library: Path, kind: Kind, mistake: str, options: argparse.Namespace) -> bool:
    broken = selftest.broken(rig, library, mistake)
    # What a cut leaves is random, so a few runs may be needed.
    for _ in range(SELF_TEST_RUNS):
        outcome = cut(broken, kind, options)
        if seen := selftest.is_seen(outcome, mistake):
            break
    first = next((problem for problems in outcome.problems.values() for problem in problems), "")
    verdict = "seen" if seen else "MISSED"
    print(f"{verdict:6}  {mistake}, {kind.name}: {len(outcome.problems)} of {outcome.cuts} cuts, as: {first}", flush=True)
    return seen


def cut(rig: Rig, kind: Kind, options: argparse.Namespace) -> Outcome:
    return uml.power_cuts(rig, kind, options.cuts) if options.uml else cuts.power_cuts(rig, kind, options.cuts, options.interval)


def self_test(rig: Rig, options: argparse.Namespace) -> bool:
    library = selftest.build(rig.work)
    # The killed machine really boots, which cannot be hidden.
    mistakes = [mistake for mistake in selftest.MISTAKES if not (options.uml and mistake == selftest.HIDDEN_REBOOT)]
    return all([is_seen(rig, library, KINDS[name], mistake, options) for name in options.kinds for mistake in mistakes])


def torture(rig: Rig, options: argparse.Namespace) -> bool:
    greens = []
    for kind in [KINDS[name] for name in options.kinds if name != FULL_DISKS]:
        what = "killed machine" if options.uml else "power cut"
        greens.append(is_green(f"{what}, {kind.name}", lambda: cut(rig, kind, options)))
        if kind.can_shut_down and not options.uml:
            count = max(1, options.cuts // SHUTDOWN_EACH)
            greens.append(is_green(f"shutdown, {kind.name}", lambda: shutdowns(rig, kind, count)))
    for fault in FAULTS if FULL_DISKS in options.kinds else []:
        greens.append(is_green(fault, lambda: disk_fault(rig, fault)))
    return all(greens)


def main() -> int:
    options = arguments()
    if reason := obstacle(options):
        print(f"torture: SKIPPED: {reason}", file=sys.stderr)
        return 0
    enter_namespace()
    # As an exception, so that the server and the workers are ended.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("torture: terminated"))
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    random.seed(seed)
    print(f"seed {seed}", flush=True)
    work = Path(tempfile.mkdtemp(prefix="spoolrun-torture-", dir=scratch_parent(options)))
    with Server(work) as server, Store(work) as store:
        rig = Rig(options.program, store, serve_jobs(server, options.small), work)
        failed = not (self_test(rig, options) if options.self_test else torture(rig, options))
    if failed:
        print(f"the logs of what failed: {work}", file=sys.stderr)
    else:
        shutil.rmtree(work)
    return 1 if failed else 0


sys.exit(main())
