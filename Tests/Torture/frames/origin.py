"""A good HTTP/2 server with the files of the jobs."""

import hashlib
import random
import subprocess
from pathlib import Path

from nginx import Nginx, free_port

# Directives of the http block.
DIRECTIVES = """
  access_log off;
  http2_max_requests 100000;
  server {{
    listen 127.0.0.1:{port} ssl http2;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    root {root};
  }}
"""
# What the jobs of a file declare, in addition to its URL.
KINDS = ["nothing", "size", "digest"]
# Sizes near those of nginx's frames, and of HTTP/2's.
SIZES = [0, 1, 8191, 8192, 8193, 16_384, 65_535, 65_536, 100_000, 250_000]


class Origin:
    """Serves while the context lasts. Each file has its own bytes."""

    def __init__(self, work: Path):
        self.work = work
        self.certificate, self.key = work / "certificate.pem", work / "key.pem"
        self.files: dict[str, bytes] = {}

    def __enter__(self) -> "Origin":
        chance = random.Random(1)
        for kind in KINDS:
            (self.work / "www" / kind).mkdir(parents=True)
            for number in range(20):
                size = SIZES[number] if number < len(SIZES) else chance.randrange(1, 120_000)
                name = f"{kind}/{number:02}"
                self.files[name] = hashlib.shake_128(name.encode()).digest(size)
                (self.work / "www" / name).write_bytes(self.files[name])
        self.make_certificate()
        self.nginx = Nginx(self.work)
        for _ in range(5):
            self.port = free_port()
            if self.nginx.start(DIRECTIVES.format(port=self.port, certificate=self.certificate, key=self.key, root=self.work / "www")):
                return self
        raise RuntimeError(f"nginx does not start: {self.nginx.said()}")

    def __exit__(self, *_: object) -> None:
        self.nginx.stop()

    def make_certificate(self) -> None:
        """Makes a self-signed certificate for 127.0.0.1, which clients trust as an authority."""
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run([*command, *names, "-keyout", self.key, "-out", self.certificate], check=True, capture_output=True)
