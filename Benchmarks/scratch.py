"""The directory of all files of a benchmark, on ext4: the served files, the spools and the outputs share a disk."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

IMAGE_SIZE = 64 << 30
# Files of at least this size are few, and need space.
LARGE = 1 << 20


def file_system(path: Path) -> tuple[str, str]:
    """Type and source of the file system of `path`, from the longest mount point above it."""
    best = ("", "", "")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        source, point, kind = line.split()[:3]
        point = point.encode().decode("unicode_escape")
        if len(point) >= len(best[0]) and path.is_relative_to(point):
            best = (point, kind, source)
    return best[1], best[2]


class Scratch:
    """Made at the start, removed at the end. On a disk with another file system, it is in a loop image with ext4."""

    def __init__(self, at: Path):
        self.at = at.resolve()
        self.image: Path | None = None
        self.aside = 0

    def __enter__(self) -> "Scratch":
        shutil.rmtree(self.at, ignore_errors=True)
        self.at.mkdir(parents=True)
        kind, source = file_system(self.at)
        self.disk = f"{kind} on {source}"
        if kind != "ext4":
            self.mount_image(kind)
        self.root = self.at / "scratch"
        self.root.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        if self.image is not None:
            subprocess.run(["umount", self.at], check=True)
            self.image.unlink()
        shutil.rmtree(self.at)

    def mount_image(self, kind: str) -> None:
        if os.geteuid() != 0:
            sys.exit(f"benchmark: {self.at} is on {kind}; only root can mount an image with ext4 there (--scratch DIR)")
        image = self.at.with_suffix(".ext4")
        with open(image, "wb") as file:
            file.truncate(IMAGE_SIZE)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, self.at], check=True)
        self.image = image
        self.disk = f"ext4 in a loop image on {kind}"

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
