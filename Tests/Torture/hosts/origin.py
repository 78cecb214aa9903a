"""nginx with files of known bytes."""

import hashlib
from pathlib import Path

from network import SERVER
from nginx import Nginx

PORT = 8000
DIRECTIVES = """
  log_format asked '$uri $status $msec';
  access_log {state}/access.log asked;
  keepalive_requests 100000;
  server {{
    listen {address}:{port};
    root {state}/www;
    location /same/ {{
      try_files /all =404;
    }}
    location /slow/ {{
      # The first second's worth comes at once.
      limit_rate 8k;
    }}
  }}
"""
SLOW = 64 * 1024


def payload(name: str, size: int) -> bytes:
    return hashlib.shake_128(name.encode()).digest(size)


class Origin:
    def __init__(self, state: Path):
        self.state = state
        (state / "www" / "slow").mkdir(parents=True)
        self.nginx = Nginx(state)
        # By name: the bytes.
        self.content: dict[str, bytes] = {}
        self.content_of_all = payload("all", 4096)
        (state / "www" / "all").write_bytes(self.content_of_all)

    def start(self) -> None:
        if not self.nginx.start(DIRECTIVES.format(state=self.state, address=SERVER, port=PORT)):
            raise SystemExit("nginx: " + self.nginx.said())

    def add(self, name: str, is_slow: bool) -> str:
        """Makes a file, which a transfer takes seconds for if it `is_slow`; returns its URL."""
        path = f"slow/{name}" if is_slow else name
        self.content[name] = payload(name, SLOW if is_slow else 4096)
        (self.state / "www" / path).write_bytes(self.content[name])
        return f"http://{SERVER}:{PORT}/{path}"

    def same(self, name: str) -> str:
        """The URL of a file that has the same bytes as all others of its kind."""
        return f"http://{SERVER}:{PORT}/same/{name}"

    def gets(self, names: set[str]) -> int:
        asked = (line.split()[0].rpartition("/")[2] for line in (self.state / "access.log").read_text().splitlines())
        return sum(1 for name in asked if name in names)

    def longest_pause(self, since: float, names: set[str]) -> float:
        """Seconds between two requests for these files.

        since: seconds of the epoch."""
        asked = (line.split() for line in (self.state / "access.log").read_text().splitlines())
        moments = [float(at) for path, _, at in asked if path.rpartition("/")[2] in names and float(at) > since]
        return max((later - earlier for earlier, later in zip([since, *moments], moments)), default=0)
