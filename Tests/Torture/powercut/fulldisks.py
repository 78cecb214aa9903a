"""Tests disks that are full, fail or turn read-only during a run: what the run reports, and that the next one completes
it."""

import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import checks
from checks import Spool
from cuts import LIMIT, Outcome, Rig, new_spool
from disks import EXT4, MIB, Kind, fsync_file, run
from jobs import Dropper, Promises
from server import AFTER

LARGE = "large-0"
# linux/loop.h, struct loop_info64
LOOP_SET_STATUS64, LOOP_GET_STATUS64 = 0x4C04, 0x4C05
LOOP_INFO_SIZE, SIZE_LIMIT_AT = 232, 32


@dataclass
class Place:
    """A file system that can be broken and repaired."""

    point: Path
    damage: Callable[[], None]
    mend: Callable[[], None]


@contextmanager
def mounted(rig: Rig, *mount: str | Path) -> Iterator[Path]:
    point = rig.store.path("full")
    point.mkdir()
    run("mount", *mount, point)
    try:
        yield point
    finally:
        run("umount", "--lazy", point)


def fill(point: Path) -> None:
    """Fills the disk to the last block."""
    with open(point / "filler", "wb", buffering=0) as file:
        for size in [MIB, 4096, 1]:
            try:
                while True:
                    file.write(b"\xff" * size)
            except OSError:
                continue


def take_inodes(point: Path) -> None:
    (point / "empty").mkdir(exist_ok=True)
    try:
        for number in range(1 << 20):
            (point / "empty" / f"{number}").touch()
    except OSError:
        return


def free(point: Path) -> None:
    (point / "filler").unlink(missing_ok=True)
    for path in (point / "empty").glob("*"):
        path.unlink()


@contextmanager
def full_tmpfs(rig: Rig, options: str, damage: Callable[[Path], None]) -> Iterator[Place]:
    with mounted(rig, "-t", "tmpfs", "-o", options, "tmpfs") as point:
        yield Place(point, lambda: damage(point), lambda: free(point))


@contextmanager
def full_ext4(rig: Rig) -> Iterator[Place]:
    with rig.store.mounted(rig.store.make(Kind("ext4", EXT4, "data=ordered", 64 * MIB)), Kind("ext4", EXT4, "data=ordered")) as point:
        yield Place(point, lambda: fill(point), lambda: free(point))


@contextmanager
def failing_fsync(rig: Rig) -> Iterator[Place]:
    """An ext4 whose disk suddenly ends too early: what is written beyond that is lost, and fsync(2) returns EIO. An
    ext4 with a journal would give the journal up and turn read-only before that."""
    kind = Kind("ext4", [*EXT4, "-O", "^has_journal"], "errors=continue", 64 * MIB)
    image = rig.store.make(kind)
    with rig.store.mounted(image, kind) as point:
        found = subprocess.run(["findmnt", "--noheadings", "--output", "SOURCE", point], capture_output=True, text=True, check=True)
        device = found.stdout.strip()

        def mend() -> None:
            limit(device, 64 * MIB)
            remount(image, point)

        yield Place(point, lambda: limit(device, 6 * MIB), mend)


def limit(device: str, size: int) -> None:
    """Sets where a loop device ends (loop(4), lo_sizelimit)."""
    descriptor = os.open(device, os.O_RDWR)
    try:
        info = bytearray(LOOP_INFO_SIZE)
        fcntl.ioctl(descriptor, LOOP_GET_STATUS64, info, True)
        struct.pack_into("Q", info, SIZE_LIMIT_AT, size)
        fcntl.ioctl(descriptor, LOOP_SET_STATUS64, bytes(info))
    finally:
        os.close(descriptor)


def remount(image: Path, point: Path) -> None:
    """Repairs it between two mounts."""
    run("umount", point)
    done = subprocess.run(["fsck.ext4", "-fy", image], capture_output=True, text=True)
    # fsck(8): 1 for errors that were corrected.
    if done.returncode > 1:
        raise RuntimeError(f"fsck.ext4: {done.stdout}{done.stderr}")
    run("mount", "-o", "loop", image, point)


@contextmanager
def read_only(rig: Rig) -> Iterator[Place]:
    """An ext4 that finds an error in itself and turns read-only (errors=remount-ro)."""
    kind = Kind("ext4", EXT4, "data=ordered,errors=remount-ro", 64 * MIB)
    image = rig.store.make(kind)
    with rig.store.mounted(image, kind) as point:

        def damage() -> None:
            device = os.stat(point).st_dev
            name = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
            Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("torture")

        yield Place(point, damage, lambda: remount(image, point))


FAULTS = {
    "no room, tmpfs": lambda rig: full_tmpfs(rig, "size=64m", fill),
    "no room, ext4": full_ext4,
    "no inodes, tmpfs": lambda rig: full_tmpfs(rig, "size=64m,nr_inodes=400", take_inodes),
    "fsync fails, ext4": failing_fsync,
    "read-only, ext4": read_only,
}
# How a run on it must end (spoolrun.1): jobs wait, or the spool itself failed; and the code of the jobs that fail. The
# large job is running when the fault comes, so not all jobs can succeed.
EXPECTED = {
    "no room, tmpfs": (75, {"disk-full"}),
    "no room, ext4": (75, {"disk-full"}),
    "no inodes, tmpfs": (75, {"disk-full"}),
    "fsync fails, ext4": (74, {"io"}),
    # No job can be written to any more.
    "read-only, ext4": (74, set()),
}


def disk_fault(rig: Rig, fault: str) -> Outcome:
    """Breaks the disk during a large file and many small ones."""
    outcome = Outcome()
    promises = Promises()
    problems: list[str] = []
    with FAULTS[fault](rig) as place:
        spool = new_spool(rig.program, rig.jobs, place.point)
        dropper = Dropper(rig.program, spool, rig.jobs, promises)
        dropper.drop(rig.jobs.all[LARGE])
        worker = rig.start(spool, place.point)
        deadline = time.monotonic() + LIMIT
        while not (spool / "partial" / f"{LARGE}.part").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        if not worker.is_running():
            problems.append("the run ended before the fault")
        # Without jobs that fail in any case, whose status would hide the fault.
        small = [job for job in rig.jobs.small if not job.has_to_fail]
        for job in small[:15]:
            dropper.drop(job)
        place.damage()
        for job in small[15:25]:
            # `spoolrun add` may refuse; writes of this program must succeed.
            if not job.has_second_name:
                dropper.drop(job)
        status = worker.wait(LIMIT)
        promises.add_log(worker.events())
        codes = {event["code"] for event in worker.events() if event["event"] == "failed"}
        if (status, codes) != EXPECTED[fault]:
            problems.append(f"the run ended with {status}, failures {codes or 'none'}; expected: {EXPECTED[fault]}")
        place.mend()
        problems += checks.after_cut(Spool(spool), rig.jobs, promises)
        problems += complete(rig, spool, promises)
    outcome.add(fault, problems)
    outcome.said = f"status {status}, failures {' '.join(sorted(codes)) or 'none'}"
    return outcome


def complete(rig: Rig, spool: Path, promises: Promises) -> list[str]:
    """Makes a person's `touch partial/*`, and another run."""
    fsync_file(spool / "defaults", AFTER)
    for path in (spool / "partial").iterdir():
        os.utime(path)
    worker = rig.start(spool, spool.parent.with_name(f"{spool.parent.name}-again"))
    status = worker.wait(LIMIT)
    run(rig.program, "clean", spool)
    problems = [] if status in (0, 1) else [f"the next run ended with {status}: {worker.events()[-1:]}"]
    return problems + list(checks.at_end(Spool(spool), rig.jobs, promises))
