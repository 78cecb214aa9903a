"""nginx on the loopback: slow before the cut, fast after it, and with one changed file."""

import os
from pathlib import Path

from nginx import Nginx, free_port

# After the cut, the spool's `defaults` send this header field.
AFTER = b"header: X-After: cut\n"
# KiB a second of a connection before the cut: a large file then takes two checkpoints.
SLOW = 1000

# Directives of the http block.
DIRECTIVES = """
  access_log off;
  sendfile on;
  map $http_x_after $tree {{ default before; cut after; }}
  map $http_x_after $rate {{ default {slow}k; cut 0; }}
  server {{
    listen 127.0.0.1:{port};
    root {work}/$tree;
    location /large- {{ limit_rate $rate; }}
  }}
"""


class Server:
    """Serves the files in `work`. With a `state` directory for its own files and a port, it serves what another server
    serves on that port, as on another machine."""

    def __init__(self, work: Path, state: Path | None = None, port: int | None = None):
        self.work, self.state, self.port = work, state or work, port

    def __enter__(self) -> "Server":
        for directory in ["before", "after"] if self.state == self.work else []:
            (self.state / directory).mkdir()
        self.nginx = Nginx(self.state)
        for _ in range(5):
            port = self.port or free_port()
            if self.nginx.start(DIRECTIVES.format(work=self.work, port=port, slow=SLOW)):
                self.port = port
                self.url = f"http://127.0.0.1:{port}"
                return self
        raise RuntimeError("nginx does not start: " + self.nginx.said())

    def __exit__(self, *_: object) -> None:
        self.nginx.stop()

    def serve(self, name: str, content: bytes, later: bytes | None = None) -> None:
        """Serves `content` under `name`, and `later` instead after the cut."""
        (self.work / "before" / name).write_bytes(content)
        if later is None:
            os.link(self.work / "before" / name, self.work / "after" / name)
        else:
            changed = self.work / "after" / name
            changed.write_bytes(later)
            # nginx makes the ETag of the size and the modification time in seconds. Without this, two versions would
            # have one ETag.
            os.utime(changed, (1, 1))
