"""Lets several hosts share a spool on real network file systems, cuts hosts off, kills mounts and workers, and checks
that each job is done once. Everything runs in namespaces that end with the rig. It needs root and /dev/fuse; without
them it says so and does nothing."""

import argparse
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import machine
import report
from backlog import backlog
from clusters import GlusterFS, MooseFS
from filesystems import Bindfs, CachingSSHFS, SharedFileSystem, SSHFS
from network import build_bridge, children
from nfs import NFS
from rig import options_parser, workplace
from scenarios import CUT, FAULTS, Outcome, clocks, crowd, doctor, drops, far_away, one_name, speed, speed_of_new_servers, struck
from stage import Stage

SYSTEMS: dict[str, tuple[type[SharedFileSystem], str]] = {
    "bindfs": (Bindfs, "bindfs"),
    "sshfs": (SSHFS, "sshfs"),
    "sshfs-default": (CachingSSHFS, "sshfs"),
    "moosefs": (MooseFS, "moosefs-master"),
    "glusterfs": (GlusterFS, "glusterfs-server"),
    "nfs": (NFS, "nfs-kernel-server"),
}
PARTS = ("doctor", "speed", "far", "drops", "faults", "clocks", "names")
NAMES = ("alpha", "beta", "gamma")
# Set in the rig's own namespaces, or in its own machine.
INSIDE = "SPOOLRUN_HOSTS_INSIDE"
# Milliseconds of a round trip, as in a network of several buildings.
WAY = 1
# On one host, there.
WORKERS = 4
# What the rig plays in a machine of its own, because this kernel may lack it.
MACHINE_SYSTEMS = {"nfs"}


def arguments() -> argparse.Namespace:
    parser = options_parser("hosts", __doc__)
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="default: %(default)s")
    parser.add_argument("--parts", default=",".join(PARTS), help="default: %(default)s; `cut` is one of the faults, `crowd` cuts a host off among 10,000 jobs, `backlog` has many jobs wait")
    parser.add_argument("--jobs", type=int, default=300, help="of the measurements of speed; default: %(default)s")
    parser.add_argument("--waiting", type=int, default=100_000, help="jobs of the part `backlog`; default: %(default)s")
    parser.add_argument("--hosts", default="1,2,3", help="how many share the spool there, in turn; default: %(default)s")
    parser.add_argument("--lease", type=int, default=60, help="seconds; default: %(default)s")
    parser.add_argument("--table", type=Path, help="file to write the results to")
    options = parser.parse_args()
    options.systems = options.systems.split(",")
    options.parts = options.parts.split(",")
    if unknown := set(options.systems) - set(SYSTEMS):
        parser.error(f"no such file system: {', '.join(unknown)}")
    if unknown := set(options.parts) - {*PARTS, "cut", "crowd", "backlog"}:
        parser.error(f"no such part: {', '.join(unknown)}")
    return options


def play_in_all(options: argparse.Namespace) -> int:
    status = 0
    if systems := [key for key in options.systems if key not in MACHINE_SYSTEMS]:
        status |= enter_namespaces([*sys.argv, "--systems", ",".join(systems)])
    if systems := [key for key in options.systems if key in MACHINE_SYSTEMS]:
        if obstacle := machine.obstacle():
            print(f"{', '.join(systems)}: LEFT OUT: {obstacle}", flush=True)
        else:
            # Its directories are in the machine's memory, so there is nothing to keep.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
            words = [*sys.argv, "--systems", ",".join(systems)]
            status |= machine.run(words, INSIDE, options.table)
    return status


def enter_namespaces(words: list[str]) -> int:
    """Runs the rig again, as the first process of namespaces of its own. They end with it, however it ends."""
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command = ["setpriv", "--pdeathsig", "KILL", *unshare, sys.executable, "-B", *words]
    process = subprocess.Popen(command, env=os.environ | {INSIDE: "1"})
    # The rig inside gets the first from the terminal, the second from here, and cleans up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: [os.kill(pid, signal.SIGTERM) for pid in children(process.pid)])
    return process.wait()


def scenarios(stage: Stage, options: argparse.Namespace) -> Iterator[Callable[[], Outcome]]:
    if "doctor" in options.parts:
        yield lambda: doctor(stage)
    if "speed" in options.parts:
        measure = speed_of_new_servers
        for hosts in map(int, options.hosts.split(",")):
            yield lambda measure=measure, hosts=hosts: measure(stage, hosts, options.jobs)
            measure = speed
    if "far" in options.parts and isinstance(stage.system, MooseFS):
        for hosts, workers in [*((int(hosts), 1) for hosts in options.hosts.split(",")), (1, WORKERS)]:
            yield lambda hosts=hosts, workers=workers: far_away(stage, hosts, workers, options.jobs, WAY)
    if "drops" in options.parts:
        yield lambda: drops(stage)
    for fault in FAULTS:
        if fault.name in stage.system.without:
            continue
        if "faults" in options.parts or (fault is CUT and "cut" in options.parts):
            yield lambda fault=fault: struck(stage, fault)
    if "crowd" in options.parts:
        yield lambda: crowd(stage)
    if "backlog" in options.parts:
        yield lambda: backlog(stage, options.waiting)
    if "clocks" in options.parts:
        for minutes in (10, -10):
            yield lambda minutes=minutes: clocks(stage, minutes)
    if "names" in options.parts:
        yield lambda: one_name(stage)


def play(options: argparse.Namespace, key: str, work: Path) -> list[Outcome]:
    kind, package = SYSTEMS[key]
    work.mkdir()
    stage = Stage(options.program.resolve(), kind(work / "system"), work, options.lease)
    outcomes: list[Outcome] = []
    try:
        stage.start(NAMES)
        for scenario in scenarios(stage, options):
            begun = time.monotonic()
            try:
                outcome = scenario()
            except TimeoutError as error:
                outcome = Outcome(f"not ended, in {stage.spool}", {"seconds": f"{time.monotonic() - begun:.0f}"}, [str(error), *stage.stop_workers()])
            outcomes.append(outcome)
            said = ", ".join(f"{column} {value}" for column, value in outcome.columns.items() if column != "says")
            verdict = "; ".join(outcome.problems) or "ok"
            print(f"{kind.name}: {outcome.scenario}: {said}: {verdict} ({time.monotonic() - begun:.0f} s)", flush=True)
    finally:
        stage.end()
        end_others()
    if options.table:
        with open(options.table.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            report.write(options.table, kind.name, report.section(stage.system, report.version(package), options.lease, outcomes))
    return outcomes


def end_others() -> None:
    """Kills what is left: the servers and mounts."""
    own = os.getpid()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != own:
            try:
                os.kill(int(entry.name), signal.SIGKILL)
            except ProcessLookupError:
                pass


def main() -> int:
    options = arguments()
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        print("hosts: left out, since it wants root and /dev/fuse", file=sys.stderr)
        return 0
    if INSIDE not in os.environ:
        return play_in_all(options)
    # The first process of a namespace gets only the signals that it handles.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    build_bridge()
    failed = False
    with workplace(options.keep, "hosts-") as work:
        for key in options.systems:
            kind, _ = SYSTEMS[key]
            path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
            if missing := [program for program in kind.programs if not shutil.which(program, path=path)]:
                print(f"{kind.name}: LEFT OUT: {', '.join(missing)} not installed (Tests/Torture/hosts/setup)", flush=True)
                continue
            failed |= any(outcome.problems for outcome in play(options, key, work / key))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
