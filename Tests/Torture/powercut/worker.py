"""spoolrun as it runs before and after a cut."""

import json
import os
import subprocess
import uuid
from pathlib import Path

# Shows another boot id to the program, in its own mount namespace.
OTHER_BOOT = 'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"'
OPTIONS = ["--once", "-v", "--log-format", "json", "--progress", "never", "-j", "24", "--per-host", "24"]


class Worker:
    """`spoolrun --once SPOOL`. Its log is in a file that is not on the cut disk."""

    def __init__(
        self,
        program: Path,
        spool: Path,
        log: Path,
        reboot: bool = False,
        preload: dict[str, str] | None = None,
        options: tuple[str, ...] = (),
    ):
        self.command: list[str | Path] = [program, *OPTIONS, *options, spool]
        self.log = log
        if reboot:
            boot = log.with_suffix(".boot")
            boot.write_text(f"{uuid.uuid4()}\n")
            namespace = ["unshare", "--mount", "--propagation", "private", "sh", "-c", OTHER_BOOT, "sh"]
            self.command = [*namespace, boot, *self.command]
        self.environment = os.environ | (preload or {})
        self.start()

    def start(self) -> None:
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stderr=log, env=self.environment)

    def is_running(self) -> bool:
        return self.process.poll() is None

    def restart(self) -> None:
        """kill -9, and another run at once."""
        self.process.kill()
        self.process.wait()
        self.start()

    def wait(self, seconds: float) -> int | None:
        """The exit status; None if it had to be killed."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def events(self) -> list[dict[str, str]]:
        return read_events(self.log)


def read_events(log: Path) -> list[dict[str, str]]:
    """All events whose line is complete; other lines are events `printed`."""
    events = []
    for line in log.read_text(errors="replace").splitlines(keepends=True):
        if line.startswith("{") and line.endswith("\n"):
            events.append(json.loads(line))
        elif line.endswith("\n"):
            events.append({"event": "printed", "text": line.strip()})
    return events
