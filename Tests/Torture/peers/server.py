"""Runs the lying server of the tests as a process, and reads its list of behaviours."""

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

TRANSPORTS = ["http", "https", "https, cut"]


@dataclass(frozen=True, eq=False)
class Behaviour:
    """One behaviour (Tests/LyingServers); `ports` by transport, 0 if it is not served."""

    number: int
    name: str
    group: str
    ports: dict[str, int]
    # The keys, of "size" and "crc32", that spoolrun's job has.
    declares: list[str]
    # Fields of the `response:` line in the journal of a job that has begun.
    facts: str
    holds: bytes
    final: bytes

    def partial(self, length: int) -> bytes:
        """The data that exists already: bytes of the server's earlier file; beyond its end, bytes of no version."""
        return self.holds[:length] + bytes(max(0, length - len(self.holds)))

    @property
    def is_beyond_validators(self) -> bool:
        """Whether the file changed and no response had a validator that shows it."""
        has_validator = 'etag="\\"' in self.facts or "modified=" in self.facts
        return self.holds != self.final and not has_validator

    def url(self, transport: str, target: str) -> str:
        scheme = "http" if transport == "http" else "https"
        return f"{scheme}://127.0.0.1:{self.ports[transport]}/{target}"


class LyingServer:
    """Serves all behaviours while the context lasts. `stopping` is the base URL of the one that stops in the middle."""

    def __init__(self, program: Path, directory: Path):
        self.program = program
        self.directory = directory
        self.ca = directory / "ca.pem"
        self.behaviours: list[Behaviour] = []
        self.stopping = ""

    def __enter__(self) -> "LyingServer":
        self.directory.mkdir()
        self.process = subprocess.Popen([self.program, self.directory], stdin=subprocess.PIPE)
        index = self.directory / "index"
        while not index.exists():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.program} ended with {self.process.returncode}")
            time.sleep(0.01)
        *lines, last = index.read_text(encoding="utf-8").splitlines()
        self.behaviours = [self.behaviour(number, line.split("\t")) for number, line in enumerate(lines)]
        self.stopping = f"http://127.0.0.1:{last.split(chr(9))[2]}"
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait(60)

    def behaviour(self, number: int, fields: list[str]) -> Behaviour:
        name, group, *ports, declares, facts = fields
        holds, final = ((self.directory / f"{number}.{what}").read_bytes() for what in ("holds", "final"))
        return Behaviour(
            number, name, group, dict(zip(TRANSPORTS, map(int, ports), strict=True)), declares.split(), facts, holds, final
        )
