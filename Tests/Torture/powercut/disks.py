"""File systems in image files, and copies of an image at an instant.

The images are on an XFS of our own, because there a copy is FICLONE (ioctl_ficlone(2)): it shares the blocks, takes a
millisecond, and is atomic beside the loop device's writes. Such a copy has what the disk had at that instant, and
nothing of the page cache, as after a power cut.
"""

import fcntl
import itertools
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# linux/fs.h and linux/ext4.h: _IOW(0x94, 9, int), _IOR('X', 125, __u32)
FICLONE = 0x40049409
SHUTDOWN = 0x8004587D
# Nothing that is still in memory reaches the disk, not even the file system's own journal.
WITHOUT_LOG_FLUSH = 2

MIB = 1 << 20
STORE_SIZE = 6 << 30


@dataclass(frozen=True)
class Kind:
    name: str
    make: list[str]
    options: str
    size: int = 400 * MIB
    # Whether the kernel can shut it down at once and for good (FS_IOC_SHUTDOWN).
    can_shut_down: bool = True

    @property
    def type(self) -> str:
        return self.name.partition("-")[0]


EXT4 = ["mkfs.ext4", "-q", "-F"]
KINDS = {
    kind.name: kind
    for kind in [
        Kind("ext4", EXT4, "data=ordered"),
        # The mode in which a file's length most often reaches the disk before its data, even more often with a commit
        # each second.
        Kind("ext4-writeback", EXT4, "data=writeback,commit=1"),
        # A copy has the UUID of the original.
        Kind("xfs", ["mkfs.xfs", "-q", "-f"], "nouuid"),
        Kind("btrfs", ["mkfs.btrfs", "-q", "-f"], "commit=5", 512 * MIB, can_shut_down=False),
    ]
}


def run(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(str(word) for word in command)}: {done.stdout}{done.stderr}")


def fsync_file(path: Path, content: bytes) -> None:
    """Writes a file and makes it and its name durable."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fsync_directory(path.parent)


def fsync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)


class Store:
    """The directory for the images, and for their mounts."""

    def __init__(self, work: Path):
        self.work = work
        self.images = work / "images"
        self.numbers = itertools.count(1)

    def __enter__(self) -> "Store":
        self.images.mkdir()
        outer = self.work / "images.xfs"
        with open(outer, "wb") as file:
            file.truncate(STORE_SIZE)
        run("mkfs.xfs", "-q", "-m", "reflink=1", outer)
        run("mount", "-o", "loop", outer, self.images)
        return self

    def __exit__(self, *_: object) -> None:
        # Lazy: if this ends with an exception, a worker may still be there, and the exception should be shown.
        run("umount", "--lazy", self.images)

    def path(self, label: str) -> Path:
        return self.images / f"{label}-{next(self.numbers)}"

    def make(self, kind: Kind) -> Path:
        image = self.path(kind.name)
        with open(image, "wb") as file:
            file.truncate(kind.size)
        run(*kind.make, image)
        return image

    def copy(self, image: Path) -> Path:
        """Copies the image as it is at this instant."""
        copy = self.path("cut")
        with open(image, "rb") as source, open(copy, "wb") as target:
            fcntl.ioctl(target.fileno(), FICLONE, source.fileno())
        return copy

    @contextmanager
    def mounted(self, image: Path, kind: Kind) -> Iterator[Path]:
        point = self.work / f"mounted-{image.name}"
        point.mkdir()
        run("mount", "-t", kind.type, "-o", f"loop,{kind.options}", image, point)
        try:
            yield point
        finally:
            run("umount", *(["--lazy"] if sys.exc_info()[0] else []), point)
            point.rmdir()


def shut_down(point: Path) -> None:
    """Makes the file system stop writing at once."""
    descriptor = os.open(point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", WITHOUT_LOG_FLUSH))
    finally:
        os.close(descriptor)
