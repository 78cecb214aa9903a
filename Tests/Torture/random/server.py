"""The server: one process. A trial's program decides each of its answers. It records what it has sent."""

import asyncio
import re
import socket
import ssl
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

from replies import REASONS, Answer, Request, Sent, answer, honest, page
from trial import SECRET, Step, Trial

# libcurl resolves all names below localhost to the loopback, so each trial has its own hosts and connections.
DOMAIN = "rig.localhost"
# Seconds after which a client must have given up an answer that does not come.
PATIENCE = 30
MOST_STALLS = 2
MOST_ACTS = 2


def make_certificates(work: Path) -> Path:
    """Makes a certificate for all hosts of all trials; returns the authority's file."""
    made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    authority = ["-subj", "/CN=random", "-keyout", work / "ca.key", "-out", work / "ca.pem"]
    signed = ["-CA", work / "ca.pem", "-CAkey", work / "ca.key", "-keyout", work / "server.key", "-out", work / "server.pem"]
    signed += ["-subj", "/CN=server", "-addext", f"subjectAltName=DNS:*.{DOMAIN}", "-addext", "basicConstraints=CA:FALSE"]
    for extra in (authority, signed):
        subprocess.run(["openssl", "req", "-x509", *made, *extra], check=True, stderr=subprocess.DEVNULL)
    return work / "ca.pem"


class Play:
    """A running trial: the state of its server, and what it has sent."""

    def __init__(self, trial: Trial, slot: int, ports: dict[str, int], act: Callable[["Play", str], None]):
        self.trial = trial
        self.slot = slot
        self.ports = ports
        self.act = act
        self.run = 0
        self.is_honest = False
        self.requests = 0
        self.redirects = 0
        # Answers that made a client wait: each delays all trials of the batch by a second.
        self.stalls = 0
        self.sent: list[Sent] = []
        self.problems: list[str] = []
        self.acts = 0
        self.resources = {resource.url: resource for resource in trial.resources}
        self.ways = {way.url: way for way in trial.ways}

    def url(self, symbolic: str, login: str = "") -> str:
        """The URL of `a/r0`, as a job has it."""
        host, _, path = symbolic.partition("/")
        scheme = "http" if self.trial.transport == "http" else "https"
        return f"{scheme}://{login}t{self.slot}{host}.{DOMAIN}:{self.ports[self.trial.transport]}/{path}"

    def step(self) -> tuple[int, Step]:
        """The number of the next request."""
        number, self.requests = self.requests, self.requests + 1
        steps = self.trial.steps
        if self.is_honest or (number >= len(steps) and not self.trial.repeats) or not steps:
            return number, honest(self.trial)
        return number, steps[number % len(steps)]

    def age(self, switches: list[int], count: int) -> int:
        """Which of so many versions exists now."""
        return count - 1 if self.is_honest else min(count - 1, sum(switch <= self.requests for switch in switches))

    def answer(self, host: str, request: Request) -> tuple[Answer, Sent, Step] | None:
        """None: never."""
        if request.fields.get("authorization") and not any(host == job_url[0] for job in self.trial.jobs for job_url in job.urls + self.edited()):
            self.problems.append(f"credentials: went to host {host}, which no job names")
        path, _, query = request.target.partition("?")
        symbolic = host + path
        if symbolic in self.ways:
            way = self.ways[symbolic]
            self.redirects += 1
            target = self.url(way.targets[self.age(way.switches, len(way.targets))])
            target += f"{'&' if '?' in target else '?'}sig={SECRET}{self.redirects}" if way.signs else ""
            return Answer(way.status, [("location", target)], b"", "length"), Sent(self.run, None, way.status, symbolic, None, None, None), Step()
        if symbolic.endswith("/portal"):
            body = page(self.trial, self.requests)
            made = Answer(200, [("content-type", "text/html")], body, "length")
            return made, Sent(self.run, request.range, 200, symbolic, None, len(body), None, is_page=True), Step(kind="portal")
        query = re.sub(rf"&?sig={SECRET}\d*", "", query)
        resource = self.resources.get(symbolic + (f"?{query}" if query else ""))
        if resource is None:
            return Answer(404, [], b"none\n", "length"), Sent(self.run, None, 404, symbolic, None, None, None), Step()
        age = self.age(resource.switches, len(resource.versions))
        version, older = resource.versions[age], resource.versions[max(0, age - 1)]
        number, step = self.step()
        if step.kind == "mute" and self.may_stall():
            return None
        if step.kind == "detour":
            return Answer(302, [("location", self.url("b/portal"))], b"", "length"), Sent(self.run, request.range, 302, symbolic, None, None, None), step
        made = answer(self.trial, step, number, request, resource, version, older)
        is_page = step.kind == "portal"
        sent = Sent(
            self.run, request.range, made.status, resource.url, version if step.kind == "serve" else None, len(made.body) if is_page else made.stated_total,
            made.validator, is_page=is_page, reach=made.reach
        )
        if made.end == "stall" and not self.may_stall():
            made.end = "fin"
        # A job that always kills its worker would never end.
        self.acts += made.act_at is not None
        if self.acts > MOST_ACTS:
            made.act_at = None
        return made, sent, step

    def may_stall(self) -> bool:
        self.stalls += 1
        return self.stalls <= MOST_STALLS

    def edited(self) -> list[str]:
        return [url for gesture in self.trial.gestures for url in gesture.urls]


class Server:
    """Serves while the context lasts. `ports` by transport."""

    def __init__(self, work: Path):
        self.authority = make_certificates(work)
        self.work = work
        self.ports: dict[str, int] = {}
        self.plays: dict[int, Play] = {}
        self.count = 0

    async def __aenter__(self) -> "Server":
        self.listeners = []
        for transport in ("http", "https"):
            context = None
            if transport != "http":
                context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
                context.load_cert_chain(self.work / "server.pem", self.work / "server.key")
                context.set_alpn_protocols(["http/1.1"])
            listener = await asyncio.start_server(self.connected, "127.0.0.1", 0, ssl=context, limit=1 << 17, backlog=1000)
            self.ports[transport] = listener.sockets[0].getsockname()[1]
            self.listeners.append(listener)
        return self

    async def __aexit__(self, *_: object) -> None:
        for listener in self.listeners:
            listener.close()

    def enter(self, trial: Trial, act: Callable[[Play, str], None]) -> Play:
        self.count += 1
        play = Play(trial, self.count, self.ports, act)
        self.plays[self.count] = play
        return play

    def leave(self, play: Play) -> None:
        del self.plays[play.slot]

    def find(self, authority: str) -> tuple[Play | None, str]:
        """The trial of a host, and which of the trial's hosts that is."""
        found = re.match(r"t(\d+)([ab])\.", authority)
        return (self.plays.get(int(found[1])), found[2]) if found else (None, "")

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # `drain` is to wait until the kernel has all bytes. With a limit of 0, asyncio would pause a TLS connection
        # that has nothing to write.
        writer.transport.set_write_buffer_limits(high=1, low=0)
        secure = writer.get_extra_info("ssl_object")
        try:
            await Http1(self, reader, writer, secure is not None).serve()
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, asyncio.CancelledError, ssl.SSLError):
            # The client has closed the connection, as it may, or the run has ended.
            pass
        finally:
            writer.transport.abort()


class Http1:
    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_secure: bool):
        self.server = server
        self.reader = reader
        self.writer = writer
        self.is_secure = is_secure

    async def serve(self) -> None:
        while True:
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
            play, host = self.server.find(fields.get("host", ""))
            if play is None:
                return
            answered = play.answer(host, Request(lines[0].split(" ")[1], fields))
            if answered is None:
                await self.wait_for_end()
                return
            if not await self.send(play, *answered):
                return

    async def wait_for_end(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while await self.reader.read(4096):
                pass

    async def send(self, play: Play, made: Answer, sent: Sent, step: Step) -> bool:
        """Whether the connection stays open."""
        fields = list(made.fields) + [("date", "Mon, 01 Jun 2026 00:00:00 GMT")]
        is_chunked = made.framing in ("chunked", "bad chunk", "no last chunk")
        if is_chunked:
            fields.append(("transfer-encoding", "chunked"))
        elif made.announced is not None:
            fields.append(("content-length", str(made.announced)))
        version = "HTTP/1.0" if made.framing == "close" and made.code % 2 else "HTTP/1.1"
        if made.framing == "close":
            fields.append(("connection", "close"))
        lines = [f"{version} {made.status} {REASONS.get(made.status, 'Reason')}", *(f"{name}: {value}" for name, value in fields)]
        sent.words = " / ".join(lines)
        wire = ("\r\n".join(lines) + "\r\n\r\n").encode()
        end = made.cut if made.cut is not None else len(made.body)
        announced = made.announced
        if made.status == 200:
            sent.total = announced
        sent.body = made.body[: end if announced is None else min(end, announced)]
        sent.how = self.how(made, end)
        if step.encoding in ("gzip", "br"):
            sent.how = "packed"
        play.sent.append(sent)
        at = 0
        for stop in sorted({end} | ({made.act_at} if made.act_at is not None and made.act_at < end else set())):
            piece = made.body[at:stop]
            at = stop
            if is_chunked and piece:
                lasts = stop == end and made.cut is not None and made.code % 2
                wire += f"{len(piece) + (9 if lasts else 0):x}\r\n".encode() + piece + (b"" if lasts else b"\r\n")
            else:
                wire += piece
            if stop == end and made.cut is None:
                wire += {"chunked": b"0\r\n\r\n", "bad chunk": b"zz\r\n"}.get(made.framing, b"")
            self.writer.write(wire)
            wire = b""
            await self.writer.drain()
            if stop == made.act_at or (made.act_at is not None and made.act_at >= end and stop == end):
                await asyncio.sleep(step.pause)
                play.act(play, step.act)
        if made.end == "stall":
            await self.wait_for_end()
            return False
        if made.cut is None and made.framing in ("length", "chunked", "none"):
            return True
        if made.cut is None and made.framing == "too short" and made.code % 2:
            # The surplus comes before the next answer.
            return True
        await self.close(made.end)
        return False

    def how(self, made: Answer, end: int) -> str:
        if made.cut is None and made.framing in ("length", "chunked", "none"):
            return "whole"
        if made.framing == "too short" and made.announced is not None and end >= made.announced:
            return "whole"
        if made.framing == "length" and end == len(made.body):
            return "whole"
        if made.framing == "close":
            if made.end in ("good", "goodbye") or (made.end == "fin" and not self.is_secure):
                return "closed"
        return "cut"

    async def close(self, end: str) -> None:
        connection = self.writer.get_extra_info("socket")
        if connection is None:
            # The client was faster.
            return
        if end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.writer.transport.abort()
        elif end == "fin" and self.is_secure:
            # No close_notify: the socket is closed below TLS, after the kernel has all bytes.
            self.writer.transport.abort()
        else:
            self.writer.close()
            await self.writer.wait_closed()
