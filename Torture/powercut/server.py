"""nginx on the loopback: slow before the cut, fast after it, and with one file changed."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

# After the cut, the spool's `defaults` send this header field.
AFTER = b"header: X-After: cut\n"
# KiB a second of a connection before the cut: a large file then takes two checkpoints.
SLOW = 1000

CONFIGURATION = """
{user}
daemon off;
worker_processes 1;
pid {state}/nginx.pid;
error_log {state}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  sendfile on;
  client_body_temp_path {state}/tmp;
  proxy_temp_path {state}/tmp;
  fastcgi_temp_path {state}/tmp;
  uwsgi_temp_path {state}/tmp;
  scgi_temp_path {state}/tmp;
  map $http_x_after $tree {{ default before; cut after; }}
  map $http_x_after $rate {{ default {slow}k; cut 0; }}
  server {{
    listen 127.0.0.1:{port};
    root {work}/$tree;
    location /large- {{ limit_rate $rate; }}
  }}
}}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Server:
    """Serves what is in `work`. With a `state` directory for its own files, and a port: what another one serves there, as on another machine."""

    def __init__(self, work: Path, state: Path | None = None, port: int | None = None):
        self.work, self.state, self.port = work, state or work, port

    def __enter__(self) -> "Server":
        for directory in ["before", "after", "tmp"] if self.state == self.work else ["tmp"]:
            (self.state / directory).mkdir()
        user = "user root;" if os.geteuid() == 0 else ""
        file = self.state / "nginx.conf"
        nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin") or "nginx"
        # A port that was free a moment ago may be taken by now.
        for _ in range(5):
            port = self.port or free_port()
            file.write_text(CONFIGURATION.format(user=user, work=self.work, state=self.state, port=port, slow=SLOW))
            arguments = [nginx, "-p", self.state, "-c", file, "-e", self.state / "error.log"]
            self.process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
            if self.answers(port):
                self.port = port
                self.url = f"http://127.0.0.1:{port}"
                return self
            self.process.kill()
            self.process.wait()
        raise RuntimeError("nginx does not start: " + (self.state / "error.log").read_text())

    def answers(self, port: int) -> bool:
        for _ in range(200):
            if self.process.poll() is not None:
                return False
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return True
            except ConnectionRefusedError:
                time.sleep(0.02)
        return False

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def serve(self, name: str, content: bytes, later: bytes | None = None) -> None:
        """Serves `content` under `name`, and `later` instead after the cut."""
        (self.work / "before" / name).write_bytes(content)
        if later is None:
            os.link(self.work / "before" / name, self.work / "after" / name)
        else:
            changed = self.work / "after" / name
            changed.write_bytes(later)
            # nginx makes its ETag of the size and the seconds of the time: without this, two versions would bear one tag.
            os.utime(changed, (1, 1))
