"""nginx on the loopback, and the files that it serves."""

import os
import subprocess
import zlib
from pathlib import Path

from nginx import Nginx, free_port

# Directives of the http block.
DIRECTIVES = """
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 10000000;
  ssl_certificate {work}/certificate.pem;
  ssl_certificate_key {work}/key.pem;
  server {{
    listen 127.0.0.1:{http};
    listen 127.0.0.1:{https} ssl;
    root {work}/www;
    # As a server far away, or a busy one: {slow} MiB a second for each connection.
    location /slow/ {{ alias {work}/www/; limit_rate {slow}m; }}
    # One small file under any name.
    location /many/ {{ rewrite ^ /one break; }}
  }}
"""
# MiB a second of a connection to /slow/.
SLOW = 20
BLOCK = 1 << 20


class Server:
    """Serves `www`; `ca` is the certificate to trust for https."""

    def __init__(self, work: Path):
        self.work = work
        self.www = work / "www"
        self.ca = work / "certificate.pem"

    def __enter__(self) -> "Server":
        self.www.mkdir()
        self.nginx = Nginx(self.work)
        subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "30"]
        keys = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", self.work / "key.pem"]
        subprocess.run(
            ["openssl", "req", "-x509", *keys, "-out", self.ca, *subject], check=True, stderr=subprocess.DEVNULL
        )
        (self.www / "one").write_bytes(os.urandom(4096))
        self.start()
        return self

    def start(self) -> None:
        for _ in range(5):
            http, https = free_port(), free_port()
            if self.nginx.start(DIRECTIVES.format(work=self.work, http=http, https=https, slow=SLOW)):
                self.http, self.https = f"http://127.0.0.1:{http}", f"https://127.0.0.1:{https}"
                return
        raise SystemExit("benchmark: nginx does not start: " + self.nginx.said())

    def __exit__(self, *_: object) -> None:
        self.nginx.stop()

    def add_file(self, name: str, size: int) -> Path:
        """A file of random bytes. It was just written, so it is in the page cache, as the served file has to be."""
        path = self.www / name
        block = os.urandom(min(size, 64 * BLOCK))
        with open(path, "wb") as file:
            left = size
            while left > 0:
                left -= file.write(block[:left])
        return path

    def add_sparse(self, name: str, size: int) -> Path:
        """A file of zeros that needs no space."""
        path = self.www / name
        with open(path, "wb") as file:
            file.truncate(size)
        return path

    def add_files(self, name: str, count: int, size: int) -> list[Path]:
        """A directory of `count` files of random bytes."""
        directory = self.www / name
        directory.mkdir()
        files = [directory / f"{number:07}" for number in range(count)]
        for file in files:
            file.write_bytes(os.urandom(size))
        return files


def zeros_crc32(count: int) -> int:
    """CRC-32 of `count` zero bytes, without reading them: each step is linear, so it is squared (as in crc32_combine).
    """

    def times(matrix: list[int], vector: int) -> int:
        result, row = 0, 0
        while vector:
            if vector & 1:
                result ^= matrix[row]
            vector >>= 1
            row += 1
        return result

    # The effect of one zero byte on each bit of the register.
    table = [zlib.crc32(b"\0", 1 << bit) ^ zlib.crc32(b"\0", 0) for bit in range(32)]
    # The register is complemented on the way in and out, hence this constant beside the linear part.
    register = 0xFFFFFFFF
    while count:
        if count & 1:
            register = times(table, register)
        table = [times(table, column) for column in table]
        count >>= 1
    return register ^ 0xFFFFFFFF
