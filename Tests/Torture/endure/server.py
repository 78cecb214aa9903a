"""nginx with files that change, and the contents of each version."""

import hashlib
import os
import time
from collections import Counter
from pathlib import Path

from nginx import Nginx, free_port

# One process, so that SIGSTOP stops all of nginx.
MAIN = "master_process off;"
# Directives of the http block.
DIRECTIVES = """
  log_format asked '$uri $status $body_bytes_sent';
  access_log {work}/access.log asked;
  server {{
    listen {address}:{port};
    root {work}/www;
    # So that a fault finds transfers under way; the first second's worth comes at once.
    limit_rate {rate};
    {directives}
  }}
"""


def payload(name: str, version: int, size: int) -> bytes:
    """Bytes that only this version of this file has, so that a splice of two is detected. All versions have one size,
    so that only the validators distinguish them."""
    return hashlib.shake_128(f"{name} {version}".encode()).digest(size)


class Server:
    """Serves files while the context lasts.

    `rate`: what a connection gets per second, in nginx's spelling; `directives`: more for its configuration; `port`: 0
    for a free one; `namespace`: the command to run it behind, if the address is one of another network.
    """

    def __init__(
        self, work: Path, rate: str, address: str = "127.0.0.1", port: int = 0, directives: str = "", namespace: tuple[str, ...] = ()
    ):
        self.work = work
        self.rate = rate
        self.address = address
        self.port = port
        self.directives = directives
        self.namespace = namespace
        self.begun = int(time.time()) - 86_400
        self.sizes: dict[str, int] = {}
        self.versions: Counter[str] = Counter()
        self.known: dict[tuple[str, bytes], int] = {}

    def __enter__(self) -> "Server":
        (self.work / "www").mkdir(parents=True)
        self.nginx = Nginx(self.work, MAIN, self.namespace)
        self.port = self.port or free_port(self.address)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def url(self, name: str) -> str:
        return f"http://{self.address}:{self.port}/{name}"

    def start(self) -> None:
        directives = DIRECTIVES.format(
            work=self.work, address=self.address, port=self.port, rate=self.rate, directives=self.directives
        )
        if not self.nginx.start(directives):
            raise SystemExit("nginx: " + self.nginx.said())

    def stop(self) -> None:
        """Cuts all connections."""
        self.nginx.stop()

    def add(self, name: str, size: int) -> bytes:
        self.sizes[name] = size
        return self.put(name)

    def change(self, name: str) -> None:
        """Replaces the file by another version, atomically, as rsync and package mirrors do."""
        self.show(name, self.versions[name] + 1)

    def show(self, name: str, version: int) -> None:
        self.versions[name] = version
        self.put(name)

    def content(self, name: str, version: int) -> bytes:
        return payload(name, version, self.sizes[name])

    def put(self, name: str) -> bytes:
        content = self.content(name, self.versions[name])
        fresh = self.work / "www" / f".{name}"
        fresh.write_bytes(content)
        # nginx makes the ETag of the size and the modification time in seconds, so no two versions may share these.
        os.utime(fresh, (self.begun + self.versions[name], self.begun + self.versions[name]))
        fresh.rename(self.work / "www" / name)
        self.known[name, hashlib.sha256(content).digest()] = self.versions[name]
        return content

    def version_of(self, name: str, content: bytes) -> int | None:
        """The version whose bytes these are; None if there is none."""
        return self.known.get((name, hashlib.sha256(content).digest()))

    def requests(self) -> int:
        return (self.work / "access.log").read_bytes().count(b"\n")

    def answers(self) -> Counter[str]:
        """The number of answers by status, and under "bytes" the bytes of all their bodies."""
        found: Counter[str] = Counter()
        for line in (self.work / "access.log").read_text().splitlines():
            _, status, length = line.rsplit(" ", 2)
            found[status] += 1
            found["bytes"] += int(length)
        return found
