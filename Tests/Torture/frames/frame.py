"""Frames of HTTP/2 (RFC 9113 section 4) as bytes, and header blocks that need no state (RFC 7541)."""

from dataclasses import dataclass, replace

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
# Flags. In SETTINGS and PING, the bit of END_STREAM is ACK.
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

Fields = list[tuple[str, str]]


@dataclass(frozen=True)
class Frame:
    type: int
    flags: int
    stream: int
    payload: bytes = b""
    # What the header says, if that is wrong.
    length: int | None = None

    @property
    def ends_stream(self) -> bool:
        return self.type in (DATA, HEADERS) and bool(self.flags & END_STREAM)

    def __bytes__(self) -> bytes:
        length = len(self.payload) if self.length is None else self.length
        return length.to_bytes(3, "big") + bytes([self.type, self.flags]) + self.stream.to_bytes(4, "big") + self.payload

    def but(self, **changes: object) -> "Frame":
        return replace(self, **changes)

    def content(self) -> bytes:
        """The payload of DATA or HEADERS without padding and priority."""
        payload = self.payload
        if self.flags & PADDED:
            payload = payload[1 : len(payload) - payload[0]]
        if self.type == HEADERS and self.flags & HAS_PRIORITY:
            payload = payload[5:]
        return payload


class Reader:
    """Splits a stream of bytes into frames."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def take(self, data: bytes) -> list[Frame]:
        """The frames that `data` completes."""
        self.bytes += data
        frames = []
        while len(self.bytes) >= 9 and len(self.bytes) >= (end := 9 + int.from_bytes(self.bytes[:3], "big")):
            stream = int.from_bytes(self.bytes[5:9], "big") & 0x7FFFFFFF
            frames.append(Frame(self.bytes[3], self.bytes[4], stream, bytes(self.bytes[9:end])))
            del self.bytes[:end]
        return frames


def block(fields: Fields) -> bytes:
    """Writes each field as a literal without indexing, with a new name (RFC 7541 section 6.2.2)."""
    return b"".join(b"\0" + text(name) + text(value) for name, value in fields)


def text(value: str) -> bytes:
    data = value.encode("latin-1")
    return number(len(data)) + data


def number(value: int) -> bytes:
    """An integer with a prefix of 7 bits (RFC 7541 section 5.1)."""
    if value < 127:
        return bytes([value])
    value -= 127
    rest = bytearray([127])
    while value >= 128:
        rest.append(value % 128 | 128)
        value //= 128
    return bytes(rest) + bytes([value])
