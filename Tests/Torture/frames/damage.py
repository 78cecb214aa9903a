"""Damages the frames of a good server before they reach the worker.

Without a digest, a client cannot detect DATA that is altered, left out or inserted before the end of a body. So a job
without a digest only gets damage that a client can detect: correct bytes from the start and then a cut; all bytes and a
surplus, with a length in the head; lies of the head with a correct body. All other damage is for jobs that declare a
CRC-32. libcurl believes a length that is too small, as over HTTP/1.1, and does not look at what follows; so that is
also for jobs that declare something.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from frame import (
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HAS_PRIORITY, HEADERS, PADDED, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, Fields, Frame, block,
)

# RFC 9113 section 7.
ERRORS = range(0xE)
# No stream of a client has this number.
NOBODY = 0x7FFFFFFF


class Cut(Exception):
    """Ends the connection, with close_notify if `announced`."""

    def __init__(self, announced: bool):
        self.announced = announced


# What the proxy does: it sends these bytes, or ends the connection.
Act = Frame | bytes | Cut


@dataclass
class Response:
    """One answer to one request."""

    chance: random.Random
    stream: int
    # It may get any damage.
    has_digest: bool
    # Its stated length may be too small.
    has_size: bool
    # Finds the stream of another such response, for frames that go astray.
    stray: Callable[[], int]
    # What is done to it, for reports.
    done: list[str] = field(default_factory=list)
    is_over: bool = False
    length: int = 0
    sent: int = 0
    plan: str = "as it is"
    cut_at: int = 0
    delayed: Frame | None = None

    def note(self, what: str) -> None:
        self.done.append(what)

    # MARK: the head

    def head(self, fields: Fields, ends: bool) -> Iterator[Act]:
        """Damages the head of the final response, or trailers."""
        self.length = next((int(value) for name, value in fields if name == "content-length"), 0)
        kinds = ["as it is"] * 4 + ["cut"] * 4 + ["surplus", "head", "head"] + ["wild"] * 4 * self.has_digest
        self.plan = self.chance.choice(kinds)
        if self.plan == "cut":
            self.cut_at = self.chance.choice([0, self.chance.randrange(self.length + 1), self.length // 8192 * 8192, self.length])
        # A length for an empty body would be a lie that looks like a whole body: after a cut, the length is removed or
        # stays correct.
        if self.plan == "head":
            fields = self.changed(fields)
        elif self.chance.random() < 0.3:
            self.note("no content-length")
            fields = [one for one in fields if one[0] != "content-length"]
        yield from self.before_head()
        flags = END_STREAM if ends else 0
        if self.plan == "cut" and self.cut_at == 0 and self.chance.random() < 0.1:
            self.note("END_STREAM in the head")
            flags, self.is_over = END_STREAM, True
        yield from self.header_frames(fields, flags)
        if self.plan == "cut" and self.cut_at == 0 and not ends and not self.is_over:
            yield from self.cut()

    def before_head(self) -> Iterator[Act]:
        if self.chance.random() < 0.1:
            self.note("103 before the head")
            for _ in range(self.chance.choice([1, 1, 2, 50])):
                yield Frame(HEADERS, END_HEADERS, self.stream, block([(":status", "103"), ("link", "</a>")]))
        if self.chance.random() < 0.02:
            self.note("DATA before the head")
            yield Frame(DATA, 0, self.stream, b"early")

    def header_frames(self, fields: Fields, flags: int) -> Iterator[Act]:
        encoded = block(fields)
        kind = self.chance.choices(["whole", "pieces", "padded", "priority", "doubled", "lost", "open", "nonsense"], [60, 8, 8, 8, 2, 2, 2, 2])[0]
        if kind != "whole":
            self.note(f"HEADERS {kind}")
        match kind:
            case "pieces":
                at = self.chance.randrange(len(encoded))
                yield Frame(HEADERS, flags, self.stream, encoded[:at])
                yield Frame(CONTINUATION, END_HEADERS, self.stream, encoded[at:])
            case "padded":
                yield Frame(HEADERS, flags | END_HEADERS | PADDED, self.stream, b"\x05" + encoded + bytes(5))
            case "priority":
                yield Frame(HEADERS, flags | END_HEADERS | HAS_PRIORITY, self.stream, b"\0\0\0\0\x10" + encoded)
            case "doubled":
                yield Frame(HEADERS, flags | END_HEADERS, self.stream, encoded)
                yield Frame(HEADERS, flags | END_HEADERS, self.stream, encoded)
            case "lost":
                pass
            case "open":
                yield Frame(HEADERS, flags, self.stream, encoded)
            case "nonsense":
                yield Frame(HEADERS, flags | END_HEADERS, self.stream, self.chance.randbytes(40))
            case _:
                yield Frame(HEADERS, flags | END_HEADERS, self.stream, encoded)

    def changed(self, fields: Fields) -> Fields:
        """Makes the head lie, before a correct body."""
        known = dict(fields)
        total = self.length
        if known[":status"] == "206":
            first, last, total = (int(number) for number in known["content-range"].removeprefix("bytes ").replace("/", "-").split("-"))
            shifts = [(first + 1, last, total), (first, last - 1, total), (first, last, total + 1), (max(0, first - 8192), last, total)]
            ranges = [f"bytes {a}-{b}/{c}" for a, b, c in shifts] + [f"bytes {first}-{last}/*", f"bytes */{total}", "lines 1-2/3"]
            choice = self.chance.choice([*ranges, "", "twice"])
            if choice:
                self.note(f"content-range {choice}")
                lie = [("content-range", known["content-range"] if choice == "twice" else choice)]
                return (fields if choice == "twice" else [one for one in fields if one[0] != "content-range"]) + lie
        few = [self.chance.randrange(self.length + 1), max(0, self.length - 8192), self.length // 8192 * 8192, max(0, self.length - 1)]
        lengths = [*(few + [0] if self.has_size else []), self.length + 1, self.length + 8192, -1, 1 << 63]
        name, value = self.chance.choice(
            [("content-length", str(self.chance.choice(lengths)))] * 5
            + [("etag", f'"{self.chance.randrange(9)}"'), ("etag", f'W/"{self.chance.randrange(9)}"'), ("etag", ""), ("last-modified", "")]
            + [("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT"), ("content-encoding", "gzip"), ("content-type", "multipart/byteranges; boundary=a")]
            + [(":status", self.chance.choice(["204", "304", "416", "429", "500", "503", "2", "", "abc"]))]
            + [("ETag", '"upper"'), ("connection", "close"), ("transfer-encoding", "chunked"), (":unknown", "1"), ("a b", "c"), ("x", "a\0b\nc")]
        )
        self.note(f"{name} {value!r}")
        rest = [one for one in fields if one[0] != name]
        if name == "content-length" and self.chance.random() < 0.2:
            self.note("twice")
            rest = fields
        # Pseudo-header fields come first; one that comes last is another lie.
        lie = [(name, value)] if value else []
        return lie + rest if name.startswith(":") and self.chance.random() < 0.9 else rest + lie

    # MARK: the body

    def data(self, frame: Frame) -> Iterator[Act]:
        """Damages a frame of the server before the end of the response."""
        match self.plan:
            case "wild":
                yield from self.wild(frame)
                return
            case "cut" if self.sent + len(frame.payload) >= self.cut_at:
                yield from self.pieces(frame.but(payload=frame.payload[: self.cut_at - self.sent], flags=0))
                yield from self.cut()
                return
            case "surplus" if frame.ends_stream:
                yield from self.surplus(frame)
                return
        self.sent += len(frame.payload)
        yield from self.pieces(frame)

    def pieces(self, frame: Frame) -> Iterator[Act]:
        """Sends the same bytes in other frames."""
        if self.chance.random() < 0.05:
            yield Frame(DATA, 0, self.stream)
        if self.chance.random() < 0.1 and frame.payload:
            at = self.chance.randrange(len(frame.payload))
            yield frame.but(payload=frame.payload[:at], flags=0)
            frame = frame.but(payload=frame.payload[at:])
        if self.chance.random() < 0.1 and len(frame.payload) < 16_000:
            padding = self.chance.choice([0, 1, 100, 255])
            yield frame.but(payload=bytes([padding]) + frame.payload + bytes(padding), flags=frame.flags | PADDED)
        elif frame.ends_stream and self.chance.random() < 0.1:
            yield frame.but(flags=0)
            yield self.chance.choice([Frame(DATA, END_STREAM, self.stream), self.trailers()])
        elif frame.ends_stream and self.chance.random() < 0.05:
            self.note("END_STREAM left out")
            yield frame.but(flags=0)
        else:
            yield frame

    def trailers(self) -> Frame:
        fields = [("etag", '"other"'), ("content-range", "bytes 0-1/2"), ("content-length", str(self.sent)), ("x-sum", "1"), (":status", "200")]
        return Frame(HEADERS, END_STREAM | END_HEADERS, self.stream, block(self.chance.sample(fields, 2)))

    def cut(self) -> Iterator[Act]:
        """Ends the body after correct bytes."""
        self.is_over = True
        stream, chance = self.stream, self.chance
        astray = Frame(DATA, END_STREAM, 0, chance.randbytes(100))
        ends: dict[str, list[Act]] = {
            "RST_STREAM": [Frame(RST_STREAM, 0, stream, chance.choice([*ERRORS, 0, 0, 0, 8, 0xFFFFFFFF]).to_bytes(4, "big"))],
            "RST_STREAM too short": [Frame(RST_STREAM, 0, stream, b"\0")],
            "empty DATA, END_STREAM": [Frame(DATA, END_STREAM, stream)],
            "trailers": [self.trailers()],
            "silence": [],
            "closed": [Cut(announced=True)],
            "cut off": [Cut(announced=False)],
            "GOAWAY, closed": [goaway(chance), Cut(announced=chance.random() < 0.5)],
            "GOAWAY below": [Frame(GOAWAY, 0, 0, max(0, stream - 2).to_bytes(4, "big") + bytes(4))],
            "DATA on stream 0": [astray],
            "DATA on an idle stream": [astray.but(stream=NOBODY)],
            "DATA on a server's stream": [astray.but(stream=2)],
            "too much padding": [Frame(DATA, PADDED | END_STREAM, stream, b"\xff" + bytes(100))],
            "too large a frame": [Frame(DATA, END_STREAM, stream, bytes(17_000))],
            "half a header": [bytes(Frame(DATA, 0, stream, b"abc"))[:5], Cut(announced=chance.random() < 0.5)],
            "half a frame of nothing": [bytes(Frame(DATA, 0, 0, b"abc", length=9)), Cut(announced=chance.random() < 0.5)],
            "noise": [chance.randbytes(200), Cut(announced=chance.random() < 0.5)],
            "PUSH_PROMISE": [Frame(PUSH_PROMISE, END_HEADERS, stream, (2).to_bytes(4, "big") + block([(":method", "GET")]))],
            "HTTP/1.1": [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"],
        }
        # Silence lasts until the job's time-out.
        name = chance.choice([name for name in ends if name != "silence" or chance.random() < 0.2] + ["RST_STREAM"] * 3 + ["empty DATA, END_STREAM"] * 3)
        self.note(f"cut at {self.cut_at} of {self.length}: {name}")
        yield from ends[name]

    def surplus(self, last: Frame) -> Iterator[Act]:
        """Sends all bytes, and more."""
        junk = self.chance.choice([last.payload or b"x", self.chance.randbytes(self.chance.randrange(1, 9000))])
        ends = self.chance.random() < 0.2
        self.note(f"surplus of {len(junk)} " + ("after END_STREAM" if ends else "before it"))
        self.is_over = True
        yield last if ends else last.but(flags=0)
        yield Frame(DATA, END_STREAM, self.stream, junk)

    def wild(self, frame: Frame) -> Iterator[Act]:
        """Makes damage that only a digest can detect."""
        chance, payload = self.chance, frame.payload
        if self.delayed:
            yield frame.but(flags=0)
            frame, self.delayed = self.delayed.but(flags=frame.flags), None
        kind = chance.choices(
            ["good", "lost", "doubled", "swapped", "shorter", "longer", "altered", "length", "astray", "flags"], [20, 1, 1, 1, 1, 1, 1, 1, 1, 1]
        )[0]
        if kind != "good":
            self.note(f"DATA {kind}")
        at, end = sorted([chance.randrange(len(payload) + 1), chance.randrange(len(payload) + 1)])
        match kind:
            case "lost":
                return
            case "doubled":
                yield frame.but(flags=0)
            case "swapped" if not frame.ends_stream:
                self.delayed = frame
                return
            case "shorter":
                frame = frame.but(payload=payload[:at] + payload[end:])
            case "longer":
                frame = frame.but(payload=(payload[:end] + payload[at:])[:16_384])
            case "altered":
                frame = frame.but(payload=payload[:at] + chance.randbytes(end - at) + payload[end:])
            case "length":
                frame = frame.but(length=max(0, len(payload) + chance.choice([-9, -1, 1, 9, 100])))
            case "astray":
                frame = frame.but(stream=self.stray())
            case "flags":
                frame = frame.but(flags=frame.flags ^ (1 << chance.randrange(8)))
        yield frame


def goaway(chance: random.Random) -> Frame:
    last = chance.choice([0, 1, 3, 5, 7, NOBODY])
    return Frame(GOAWAY, 0, 0, last.to_bytes(4, "big") + chance.choice(ERRORS).to_bytes(4, "big") + b"bye")


def noise(chance: random.Random, streams: Iterable[int]) -> Iterator[Act]:
    """Sends frames between those of responses: rarely any, and rarely one that ends the connection."""
    one = chance.choice([*streams, NOBODY, 2, 0])
    increment = chance.choice([0, 1, 0x7FFFFFFF]).to_bytes(4, "big")
    setting = chance.randrange(8).to_bytes(2, "big") + chance.choice([0, 1, 16_384, 0xFFFFFFFF, chance.randrange(1 << 32)]).to_bytes(4, "big")
    lot = chance.random()
    if lot < 0.03:
        yield chance.choice(
            [
                Frame(PING, 0, 0, chance.randbytes(8)), Frame(PING, ACK, 0, bytes(8)), Frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\x01"), Frame(SETTINGS, 0, 0),
                Frame(chance.randrange(16, 256), chance.randrange(256), one, chance.randbytes(50)), Frame(PRIORITY, 0, NOBODY, b"\0\0\0\0\x10"),
            ]
        )
    elif lot < 0.04:
        yield chance.choice(
            [
                Frame(WINDOW_UPDATE, 0, one, increment), Frame(SETTINGS, 0, 0, setting), Frame(SETTINGS, ACK, 0), Frame(SETTINGS, 0, 0, b"odd"),
                Frame(SETTINGS, 0, one, setting), Frame(PING, 0, 0, b"short"), Frame(PING, 0, one, bytes(8)), Frame(RST_STREAM, 0, one, bytes(4)),
                Frame(RST_STREAM, 0, one, chance.choice(ERRORS).to_bytes(4, "big")), goaway(chance), Frame(PRIORITY, 0, one, b"\0"),
                Frame(CONTINUATION, END_HEADERS, one, block([("x", "y")])),
                Frame(HEADERS, END_HEADERS, 2, block([(":status", "200")])),
            ]
        )
    elif lot < 0.0405:
        for _ in range(5000):
            yield chance.choice([Frame(PING, 0, 0, bytes(8)), Frame(SETTINGS, 0, 0)])
