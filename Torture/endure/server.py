"""nginx with files that change, and what each version of them holds."""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path

CONFIGURATION = """
{user}
daemon off;
# One process, so that SIGSTOP stops all of it.
master_process off;
pid {work}/nginx.pid;
error_log {work}/error.log;
events {{ worker_connections 1024; }}
http {{
  log_format asked '$uri $status $body_bytes_sent';
  access_log {work}/access.log asked;
  client_body_temp_path {work}/tmp;
  proxy_temp_path {work}/tmp;
  fastcgi_temp_path {work}/tmp;
  uwsgi_temp_path {work}/tmp;
  scgi_temp_path {work}/tmp;
  server {{
    listen {address}:{port};
    root {work}/www;
    # So that a fault finds transfers under way; the first second's worth comes at once.
    limit_rate {rate};
    {directives}
  }}
}}
"""


def payload(name: str, version: int, size: int) -> bytes:
    """Bytes that belong to this file and version alone, so that a splice of two cannot look right; all versions have one size, so that
    nothing but the validators tells them apart."""
    return hashlib.shake_128(f"{name} {version}".encode()).digest(size)


class Server:
    """Serves files while the context lasts.

    `rate`: what a connection gets per second, in nginx's spelling; `directives`: more for its configuration; `port`: 0 for a free one;
    `namespace`: the command to run it behind, if the address is one of another network."""

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
        (self.work / "tmp").mkdir()
        if not self.port:
            with socket.create_server((self.address, 0)) as listener:
                self.port = listener.getsockname()[1]
        user = "user root;" if os.geteuid() == 0 else ""
        (self.work / "nginx.conf").write_text(
            CONFIGURATION.format(
                user=user, work=self.work, address=self.address, port=self.port, rate=self.rate, directives=self.directives
            )
        )
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def url(self, name: str) -> str:
        return f"http://{self.address}:{self.port}/{name}"

    def start(self) -> None:
        nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        if nginx is None:
            raise SystemExit("nginx is not installed; scripts/setup does")
        command = [*self.namespace, nginx, "-p", self.work, "-c", self.work / "nginx.conf", "-e", self.work / "error.log"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        # It writes its process id once it has its port.
        while not self.is_listening():
            if self.process.poll() is not None:
                raise SystemExit("nginx: " + (self.work / "error.log").read_text())
            time.sleep(0.01)

    def is_listening(self) -> bool:
        try:
            return (self.work / "nginx.pid").read_text().strip() == str(self.process.pid)
        except FileNotFoundError:
            return False

    def stop(self) -> None:
        """Cuts all connections."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def add(self, name: str, size: int) -> bytes:
        self.sizes[name] = size
        return self.put(name)

    def change(self, name: str) -> None:
        """Another version under the same URL, whole at once, as rsync and package mirrors do it."""
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
        # nginx makes the ETag of the size and the second of the last change: no two versions may share it.
        os.utime(fresh, (self.begun + self.versions[name], self.begun + self.versions[name]))
        fresh.rename(self.work / "www" / name)
        self.known[name, hashlib.sha256(content).digest()] = self.versions[name]
        return content

    def version_of(self, name: str, content: bytes) -> int | None:
        """Which version this is, whole; None if it is none."""
        return self.known.get((name, hashlib.sha256(content).digest()))

    def requests(self) -> int:
        return (self.work / "access.log").read_bytes().count(b"\n")

    def answers(self) -> Counter[str]:
        """How many answers of each status, and under "bytes" how long their bodies were together."""
        found: Counter[str] = Counter()
        for line in (self.work / "access.log").read_text().splitlines():
            _, status, length = line.rsplit(" ", 2)
            found[status] += 1
            found["bytes"] += int(length)
        return found
