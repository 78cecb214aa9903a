"""The files on the servers, and the contents of each version."""

import base64
import hashlib
import os
import time
from pathlib import Path

# The validators of a file this old are strong (RFC 9110, section 8.8.2.2).
AGE = 86_400


def payload(name: str, version: int, size: int) -> bytes:
    """Bytes that only this version of this file has, so that a splice of two is detected. They are text, so that
    servers compress them."""
    return base64.b64encode(hashlib.shake_128(f"{name} {version}".encode()).digest(size * 3 // 4 + 3))[:size]


class Site:
    def __init__(self, root: Path):
        self.root = root
        root.mkdir()
        self.begun = int(time.time()) - AGE
        self.versions: dict[str, list[bytes]] = {}

    def put(self, name: str, size: int, mtime_ns: int | None = None) -> bytes:
        """Replaces the file by its next version, atomically. Each is a minute younger than the one before, unless
        `mtime_ns` is given."""
        versions = self.versions.setdefault(name, [])
        content = payload(name, len(versions), size)
        if mtime_ns is None:
            mtime_ns = (self.begun + 60 * len(versions)) * 10**9
        versions.append(content)
        fresh = self.root / f".{name}"
        fresh.write_bytes(content)
        fresh.chmod(0o644)
        os.utime(fresh, ns=(mtime_ns, mtime_ns))
        fresh.rename(self.root / name)
        return content

    def version_of(self, name: str, content: bytes) -> int | None:
        """The version whose bytes these are; None if there is none."""
        versions = self.versions[name]
        return versions.index(content) if content in versions else None
