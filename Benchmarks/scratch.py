"""The directory of all files of a benchmark: the served files, the spools and the outputs share a disk."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

IMAGE_SIZE = 64 << 30
# Files of at least this size are few, and need space.
LARGE = 1 << 20
# How each file system is made in an image, with the defaults of its own tool: ext4 has a journal then. Its
# 4 million inodes are too few, because some rows make a million small files, which stay until the end.
MAKERS = {"ext4": ["mkfs.ext4", "-q", "-F", "-N", "8000000"], "xfs": ["mkfs.xfs", "-q", "-f"], "btrfs": ["mkfs.btrfs", "-q", "-f"]}
# The file system of the directory itself, as it is.
AS_IT_IS = "none"


def file_system(path: Path) -> tuple[str, str]:
    """Type and source of the file system of `path`, from the longest mount point above it."""
    best = ("", "", "")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        source, point, kind = line.split()[:3]
        point = point.encode().decode("unicode_escape")
        if len(point) >= len(best[0]) and path.is_relative_to(point):
            best = (point, kind, source)
    return best[1], best[2]


def described(path: Path) -> str:
    """The file system of `path`, in words."""
    kind, source = file_system(path)
    if kind == "ext4":
        # Each journal has a thread, and a directory there (ext4(5), has_journal).
        journals = Path("/proc/fs/jbd2")
        device = Path(source).resolve().name
        has_journal = journals.is_dir() and any(one.name.startswith(f"{device}-") for one in journals.iterdir())
        kind += " with a journal" if has_journal else " without a journal"
    return f"{kind} on {source}"


class Scratch:
    """Made at the start, removed at the end. In a loop image with the file system `kind`, because the disk of a machine
    for tests is often unlike that of its users."""

    def __init__(self, at: Path, kind: str):
        self.at = at.resolve()
        self.kind = kind
        self.image: Path | None = None
        self.aside = 0

    def __enter__(self) -> "Scratch":
        shutil.rmtree(self.at, ignore_errors=True)
        self.at.mkdir(parents=True)
        below = described(self.at)
        self.disk = below
        if self.kind != AS_IT_IS:
            self.mount_image()
            self.disk = f"{described(self.at)}, an image on {below}"
        self.root = self.at / "scratch"
        self.root.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        if self.image is not None:
            subprocess.run(["umount", self.at], check=True)
            self.image.unlink()
        shutil.rmtree(self.at)

    def mount_image(self) -> None:
        if os.geteuid() != 0:
            sys.exit(f"benchmark: only root can mount an image with {self.kind}; --fs none measures on the disk as it is")
        image = self.at.with_suffix(f".{self.kind}")
        with open(image, "wb") as file:
            file.truncate(IMAGE_SIZE)
        subprocess.run([*MAKERS[self.kind], image], check=True)
        subprocess.run(["mount", "-o", "loop", image, self.at], check=True)
        self.image = image

    def fresh(self, name: str) -> Path:
        """An empty directory of that name.

        Its earlier contents are moved aside until the end, except large files: ext4 skips inodes that were deleted in
        the last minutes, one by one, which slows down whoever makes files after thousands were deleted (measured: 2,000
        files took curl 0.1 s, and then up to 6 s).
        """
        path = self.root / name
        if path.exists():
            for directory, _, files in os.walk(path):
                for file in files:
                    if os.stat(f"{directory}/{file}", follow_symlinks=False).st_size > LARGE:
                        os.unlink(f"{directory}/{file}")
            self.aside += 1
            path.rename(self.root / f"aside-{self.aside}")
        path.mkdir()
        return path
