"""The server's side of HTTP/2. Frames are written by hand (RFC 9113), so that they can be wrong; a library decodes only
requests."""

import struct
import sys
from asyncio import StreamReader

try:
    from hpack import Decoder
except ImportError:
    # Debian's package, also for a Python that is not Debian's: it has no compiled code.
    sys.path.append("/usr/lib/python3/dist-packages")
    from hpack import Decoder

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 32
# NO_ERROR twice: frameworks send it when they drop a response.
CODES = [0, 0, 2, 8, 7]
LARGEST = 16_384


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def integer(value: int) -> bytes:
    """An integer with a prefix of 7 bits; the first bit is 0 (RFC 7541 section 5.1)."""
    if value < 127:
        return bytes([value])
    out, value = [127], value - 127
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes([*out, value])


def head(stream: int, status: int, fields: list[tuple[str, str]], ends: bool = False) -> bytes:
    """Literals without indexing and without Huffman coding (RFC 7541 section 6.2.2)."""
    block = b""
    for name, value in [(":status", str(status)), *fields]:
        raw_name, raw_value = name.lower().encode(), value.encode()
        block += b"\0" + integer(len(raw_name)) + raw_name + integer(len(raw_value)) + raw_value
    return frame(HEADERS, END_HEADERS | (END_STREAM if ends else 0), stream, block)


def data(stream: int, body: bytes, ends: bool = False) -> bytes:
    pieces = [body[at : at + LARGEST] for at in range(0, len(body), LARGEST)] or ([b""] if ends else [])
    return b"".join(frame(DATA, END_STREAM if ends and number == len(pieces) - 1 else 0, stream, piece) for number, piece in enumerate(pieces))


def reset(stream: int, code: int) -> bytes:
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def goaway(last: int, code: int) -> bytes:
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, code))


async def read_frame(reader: StreamReader) -> tuple[int, int, int, bytes]:
    """Kind, flags, stream, payload."""
    first = await reader.readexactly(9)
    length = int.from_bytes(first[:3], "big")
    return first[3], first[4], int.from_bytes(first[5:9], "big") & 0x7FFF_FFFF, await reader.readexactly(length)


def block_of(flags: int, payload: bytes) -> bytes:
    """The field block of a HEADERS frame."""
    padding = 0
    if flags & PADDED:
        padding, payload = payload[0], payload[1:]
    if flags & PRIORITY:
        payload = payload[5:]
    return payload[: len(payload) - padding]


class Fields:
    """Decodes one connection's requests."""

    def __init__(self) -> None:
        self.decoder = Decoder()

    def of(self, flags: int, payload: bytes) -> dict[str, str]:
        return {name: value for name, value in self.decoder.decode(block_of(flags, payload))}
