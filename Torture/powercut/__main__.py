"""Power cuts for spoolrun: `make powercut`. Needs root, for it mounts disk images of its own."""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import selftest
from cuts import Outcome, Rig, power_cuts
from disks import KINDS, Kind, Store
from fulldisks import FAULTS, disk_fault
from jobs import Jobs
from server import Server
from shutdowns import shutdowns

# Set in the namespace that the mounts are in: they go with it, whatever becomes of this program.
INSIDE = "SPOOLRUN_TORTURE_INSIDE"
# Room for the images.
LEAST_ROOM = 3 << 30
# A shutdown takes so much longer than a copy that there is one for so many cuts.
SHUTDOWN_EACH = 10


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="Torture/powercut", description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the spoolrun to torture")
    parser.add_argument("--cuts", type=int, default=100, help="for each file system, at least; default: %(default)s")
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma-separated; default: %(default)s")
    parser.add_argument("--interval", type=float, default=0.15, help="seconds between cuts; default: %(default)s")
    parser.add_argument("--small", type=int, default=100, help="small jobs in each run; default: %(default)s")
    parser.add_argument("--self-test", action="store_true", help="break the worker on purpose instead, and see whether that is found")
    parser.add_argument("--seed", type=int, help="for the same sizes and pauses again; default: another each time")
    parser.add_argument("--scratch", type=Path, help="where the images go; default: /dev/shm if there is room, else /tmp")
    options = parser.parse_args()
    if not options.program.is_file():
        parser.error(f"no program {options.program}: make")
    options.program = options.program.resolve()
    unknown = [kind for kind in options.kinds.split(",") if kind not in KINDS]
    if unknown:
        parser.error(f"no file systems {', '.join(unknown)}; there are {', '.join(KINDS)}")
    return options


def obstacle() -> str | None:
    if os.geteuid() != 0:
        return "not root, who alone may mount disk images"
    if not Path("/dev/loop-control").exists():
        return "this machine has no loop devices"
    known = Path("/proc/filesystems").read_text().split()
    for name in ["xfs", "ext4", "btrfs"]:
        if name not in known and os.system(f"modprobe -q {name}") != 0:
            return f"this kernel has no {name}"
    return None


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
    if memory.is_dir() and shutil.disk_usage(memory).free >= LEAST_ROOM:
        return memory
    return Path(tempfile.gettempdir())


def show(fault: str, outcome: Outcome, seconds: float) -> None:
    states = " ".join(f"{state}:{count}" for state, count in sorted(outcome.states.items()))
    verdict = "FAILED" if outcome.problems else "ok"
    print(
        f"{verdict:6}  {fault:26}  {outcome.cuts:5} cuts  {len(outcome.problems):4} with problems"
        f"  {outcome.unearned:4} with unearned data  {seconds:5.0f} s  {states}",
        flush=True,
    )
    for label, problems in list(outcome.problems.items())[:5]:
        print(f"        {label}", *problems[:8], sep="\n            ")


def self_test(rig: Rig, kind: Kind, options: argparse.Namespace) -> bool:
    library = selftest.build(rig.work)
    all_seen = True
    for mistake in selftest.MISTAKES:
        outcome = selftest.run_mistake(rig, library, kind, mistake, options.cuts, options.interval)
        seen = selftest.is_seen(outcome, mistake)
        all_seen = all_seen and seen
        first = next((problem for problems in outcome.problems.values() for problem in problems), "")
        print(
            f"{'seen' if seen else 'MISSED':6}  {mistake}, {kind.name}: {len(outcome.problems)} of {outcome.cuts} cuts, as: {first}",
            flush=True,
        )
    return all_seen


def main() -> int:
    options = arguments()
    if reason := obstacle():
        print(f"torture: SKIPPED: {reason}", file=sys.stderr)
        return 0
    enter_namespace()
    # As an exception, so that the server and the workers are ended.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("torture: terminated"))
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    random.seed(seed)
    print(f"seed {seed}", flush=True)
    failed = False
    work = Path(tempfile.mkdtemp(prefix="spoolrun-torture-", dir=scratch_parent(options)))
    with Server(work) as server, Store(work) as store:
        rig = Rig(options.program, store, Jobs(server, options.small), work)
        for name in options.kinds.split(","):
            if options.self_test:
                failed = not self_test(rig, KINDS[name], options) or failed
                continue
            began = time.monotonic()
            outcome = power_cuts(rig, KINDS[name], options.cuts, options.interval)
            show(f"power cut, {name}", outcome, time.monotonic() - began)
            failed = failed or bool(outcome.problems)
            if KINDS[name].can_shut_down:
                began = time.monotonic()
                outcome = shutdowns(rig, KINDS[name], max(1, options.cuts // SHUTDOWN_EACH))
                show(f"shutdown, {name}", outcome, time.monotonic() - began)
                failed = failed or bool(outcome.problems)
        for fault in [] if options.self_test else FAULTS:
            began = time.monotonic()
            outcome = Outcome()
            said = disk_fault(rig, fault, outcome)
            show(fault, outcome, time.monotonic() - began)
            print(f"        {said}", flush=True)
            failed = failed or bool(outcome.problems)
    if failed:
        print(f"the logs of what failed: {work}", file=sys.stderr)
    else:
        shutil.rmtree(work)
    return 1 if failed else 0


sys.exit(main())
