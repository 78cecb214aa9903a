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
worker_processes 1;
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
  }}
}}
"""


def payload(name: str, version: int, size: int) -> bytes:
    """Bytes that belong to this file and version alone, so that a splice of two cannot look right; all versions have one size, so that
    nothing but the validators tells them apart."""
    return hashlib.shake_128(f"{name} {version}".encode()).digest(size)


class Server:
    """Serves files while the context lasts; `rate` is what a connection gets per second, in nginx's spelling."""

    def __init__(self, work: Path, rate: str, address: str = "127.0.0.1"):
        self.work = work
        self.rate = rate
        self.address = address
        self.port = 0
        self.begun = int(time.time()) - 86_400
        self.sizes: dict[str, int] = {}
        self.versions: Counter[str] = Counter()

    def __enter__(self) -> "Server":
        (self.work / "www").mkdir(parents=True)
        (self.work / "tmp").mkdir()
        with socket.create_server((self.address, 0)) as listener:
            self.port = listener.getsockname()[1]
        user = "user root;" if os.geteuid() == 0 else ""
        (self.work / "nginx.conf").write_text(
            CONFIGURATION.format(user=user, work=self.work, address=self.address, port=self.port, rate=self.rate)
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
        command = [nginx, "-p", self.work, "-c", self.work / "nginx.conf", "-e", self.work / "error.log"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection((self.address, self.port)).close()
                return
            except ConnectionRefusedError:
                if self.process.poll() is not None:
                    raise SystemExit("nginx: " + (self.work / "error.log").read_text()) from None
                time.sleep(0.01)

    def stop(self) -> None:
        """Cuts all connections."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def add(self, name: str, size: int) -> bytes:
        self.sizes[name] = size
        return self.put(name)

    def change(self, name: str) -> None:
        """Another version under the same URL, whole at once, as rsync and package mirrors do it."""
        self.versions[name] += 1
        self.put(name)

    def put(self, name: str) -> bytes:
        content = payload(name, self.versions[name], self.sizes[name])
        fresh = self.work / "www" / f".{name}"
        fresh.write_bytes(content)
        # nginx makes the ETag of the size and the second of the last change: no two versions may share it.
        os.utime(fresh, (self.begun + self.versions[name], self.begun + self.versions[name]))
        fresh.rename(self.work / "www" / name)
        return content

    def version_of(self, name: str, content: bytes) -> int | None:
        """Which version this is, whole; None if it is none."""
        versions = range(self.versions[name], -1, -1)
        return next((version for version in versions if content == payload(name, version, self.sizes[name])), None)

    def answers(self) -> Counter[str]:
        """How many answers of each status, and under "bytes" how long their bodies were together."""
        found: Counter[str] = Counter()
        for line in (self.work / "access.log").read_text().splitlines():
            _, status, length = line.rsplit(" ", 2)
            found[status] += 1
            found["bytes"] += int(length)
        return found
