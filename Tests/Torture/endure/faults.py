"""Faults of the server and of the network. Each fault ends by itself, or when all are ended."""

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from link import SERVER, Link
from server import Server

# Files whose CRC-32 a job may declare: they only change to be wrong for a while.
FIXED = [f"fixed-{number}" for number in range(60)]
# Files of which any version is right.
CHANGING = [f"changing-{number}" for number in range(40)]

# A file has a fault if a file of its name is in the fault's directory.
DIRECTIVES = """
    listen {address}:443 ssl;
    ssl_certificate {work}/server.pem;
    ssl_certificate_key {work}/server.key;
    location / {{
      if (-f {work}/busy$uri) {{ return 503; }}
      if (-f {work}/missing$uri) {{ return 404; }}
      if (-f {work}/wait$uri) {{
        add_header Retry-After 2 always;
        return 429;
      }}
    }}
"""


def make_certificates(work: Path) -> Path:
    """Makes a certificate for the server's address. Returns the authority's file."""
    made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    authority = ["-subj", "/CN=soak", "-keyout", work / "ca.key", "-out", work / "ca.pem"]
    signed = ["-CA", work / "ca.pem", "-CAkey", work / "ca.key", "-keyout", work / "server.key", "-out", work / "server.pem"]
    signed += ["-subj", "/CN=server", "-addext", f"subjectAltName=IP:{SERVER}", "-addext", "basicConstraints=CA:FALSE"]
    for extra in (authority, signed):
        subprocess.run(["openssl", "req", "-x509", *made, *extra], check=True, stderr=subprocess.DEVNULL)
    return work / "ca.pem"


def faulty_server(work: Path, link: Link, rate: str) -> Server:
    """The certificate and the faults' directories must be in `work`."""
    for fault in ("busy", "missing", "wait"):
        (work / fault).mkdir()
    directives = DIRECTIVES.format(address=SERVER, work=work)
    return Server(work, rate, SERVER, 80, directives, link.server)


class Faults:
    def __init__(self, server: Server, link: Link, rejected: Path, chance: random.Random):
        self.server = server
        self.link = link
        # The verify hook rejects an output that has a file here.
        self.rejected = rejected
        self.chance = chance
        self.cases: Counter[str] = Counter()
        # When each fault ends, and how.
        self.ends: dict[str, tuple[float, Callable[[], object]]] = {}

    def strike(self) -> None:
        kinds: list[tuple[Callable[[], None], float]] = [
            (lambda: self.file_fault("busy"), 4),
            (lambda: self.file_fault("wait"), 4),
            (lambda: self.file_fault("missing"), 3),
            (self.wrong, 3),
            (self.change, 3),
            (self.cut, 6),
            (self.stall, 1),
            (self.restart, 1),
            (self.pull, 1),
        ]
        self.chance.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]()

    def tick(self) -> None:
        now = time.monotonic()
        for what in [what for what, (when, _) in self.ends.items() if when <= now]:
            self.ends.pop(what)[1]()

    def all_over(self) -> None:
        while self.ends:
            self.ends.popitem()[1][1]()

    def begin(self, case: str, what: str, seconds: tuple[float, float], do: Callable[[], object], undo: Callable[[], object]) -> None:
        if what not in self.ends:
            self.cases[case] += 1
            do()
            self.ends[what] = (time.monotonic() + self.chance.uniform(*seconds), undo)

    def file_fault(self, kind: str) -> None:
        cases = {"busy": "503", "wait": "429 with Retry-After", "missing": "404"}
        name = self.chance.choice(FIXED + CHANGING)
        marker = self.server.work / kind / name
        self.begin(cases[kind], f"{kind} {name}", (1, 15), marker.touch, marker.unlink)

    def wrong(self) -> None:
        name = self.chance.choice(FIXED)
        self.begin("other bytes than declared", f"wrong {name}", (1, 10), lambda: self.server.show(name, 1), lambda: self.server.show(name, 0))

    def change(self) -> None:
        self.cases["another version of a file"] += 1
        self.server.change(self.chance.choice(CHANGING))

    def cut(self) -> None:
        # The other end may have closed what is established at this end.
        if "cable" not in self.ends and "server" not in self.ends and (ports := self.link.connections()):
            self.cases["connection reset"] += 1
            self.link.reset(self.chance.choice(ports))

    def stall(self) -> None:
        process = self.server.nginx.process
        self.begin(
            "server stopped answering", "server", (1, 6), lambda: process.send_signal(signal.SIGSTOP), lambda: process.send_signal(signal.SIGCONT)
        )

    def restart(self) -> None:
        self.begin("server down, and up again", "server", (0, 2), self.server.stop, self.server.start)

    def pull(self) -> None:
        self.begin("network down, and up again", "cable", (0.2, 6), self.link.pull, self.link.plug)

    def reject(self, output: str) -> None:
        """The verify hook rejects it for a while."""
        marker = self.rejected / output
        self.begin("rejected by the verify hook", f"rejected {output}", (1, 10), marker.touch, marker.unlink)
