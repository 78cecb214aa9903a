"""nginx for the benchmark and the torture, which link to this file: the frame of its configuration, and its process."""

import errno
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

FRAME = """
{user}
daemon off;
{main}
worker_processes 1;
pid {state}/nginx.pid;
error_log {state}/error.log;
events {{ worker_connections 1024; }}
http {{
  client_body_temp_path {state}/tmp;
  proxy_temp_path {state}/tmp;
  fastcgi_temp_path {state}/tmp;
  uwsgi_temp_path {state}/tmp;
  scgi_temp_path {state}/tmp;
  {http}
}}
"""


def free_port(address: str = "127.0.0.1") -> int:
    """One that was free a moment ago. The kernel gives none of these to others by itself."""
    while True:
        try:
            with socket.create_server((address, random.SystemRandom().randrange(20000, 32000))) as listener:
                return listener.getsockname()[1]
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


class Nginx:
    """Its own files are in `state`. `main`: directives beside `http`; `namespace`: the command to run it behind."""

    def __init__(self, state: Path, main: str = "", namespace: Sequence[str] = ()):
        self.state = state
        self.main = main
        self.namespace = namespace
        (state / "tmp").mkdir()

    def start(self, http: str) -> bool:
        """Serves as the directives `http` say; False if it ended at once, as it does where its port is taken."""
        user = "user root;" if os.geteuid() == 0 else ""
        file = self.state / "nginx.conf"
        file.write_text(FRAME.format(user=user, main=self.main, state=self.state, http=http))
        nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        if nginx is None:
            raise SystemExit("nginx is not installed: run scripts/setup test")
        command = [*self.namespace, nginx, "-p", self.state, "-c", file, "-e", self.state / "error.log"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        # It writes its process id once it has its port.
        while not self.is_listening():
            if self.process.poll() is not None:
                return False
            time.sleep(0.01)
        return True

    def is_listening(self) -> bool:
        try:
            return (self.state / "nginx.pid").read_text().strip() == str(self.process.pid)
        except FileNotFoundError:
            return False

    def said(self) -> str:
        return (self.state / "error.log").read_text()

    def stop(self) -> None:
        """Cuts all connections."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
