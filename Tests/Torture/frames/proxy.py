"""Terminates TLS on both sides, between a good server and the worker, and damages what the server sends over HTTP/2.
HTTP/1.1 passes unchanged."""

import random
import select
import socket
import ssl
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from damage import NOBODY, Act, Cut, Response, noise
from frame import CONTINUATION, DATA, END_HEADERS, HEADERS, PADDED, PREFACE, RST_STREAM, WINDOW_UPDATE, Frame, Reader
from hpack import Decoder, HPACKError

# Seconds; only a peer that hangs takes this long.
PATIENCE = 20


class Proxy:
    """Listens while the context lasts. The seed, the path and the number of the request for that path determine the
    damage."""

    def __init__(self, certificate: Path, key: Path, server: int):
        self.server = server
        self.seed = 0
        # An honest proxy, which damages nothing.
        self.is_honest = False
        self.requests: Counter[str] = Counter()
        # The damage to responses, by path.
        self.damage: defaultdict[str, list[list[str]]] = defaultdict(list)
        # Errors of this program.
        self.problems: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        self.inward = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.inward.load_cert_chain(certificate, key)
        self.inward.set_alpn_protocols(["h2", "http/1.1"])
        self.certificate = certificate

    def __enter__(self) -> "Proxy":
        threading.Thread(target=self.listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()

    def begin(self, seed: int) -> None:
        self.seed = seed
        self.requests.clear()
        self.damage.clear()

    def listen(self) -> None:
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(plain,), daemon=True).start()

    def serve(self, plain: socket.socket) -> None:
        try:
            plain.settimeout(PATIENCE)
            with self.inward.wrap_socket(plain, server_side=True) as client:
                protocol = client.selected_alpn_protocol() or "http/1.1"
                outward = ssl.create_default_context(cafile=self.certificate)
                outward.set_alpn_protocols([protocol])
                with socket.create_connection(("127.0.0.1", self.server), PATIENCE) as connection:
                    with outward.wrap_socket(connection, server_hostname="127.0.0.1") as server:
                        (Connection(self, client, server) if protocol == "h2" else Passage(client, server)).run()
        except OSError:
            # One side closed, as either may do.
            pass
        except Exception as error:
            self.problems.append(f"seed {self.seed}: {type(error).__name__}: {error}")


class Passage:
    """Passes bytes until either side ends."""

    def __init__(self, client: ssl.SSLSocket, server: ssl.SSLSocket):
        self.client = client
        self.server = server

    def run(self) -> None:
        poll = select.poll()
        for side in (self.client, self.server):
            poll.register(side, select.POLLIN)
        try:
            while True:
                ready = {side.fileno() for side in (self.client, self.server) if side.pending()} or {number for number, _ in poll.poll(PATIENCE * 1000)}
                if not ready:
                    return
                for side, take in ((self.client, self.from_client), (self.server, self.from_server)):
                    if side.fileno() in ready:
                        data = side.recv(65_536)
                        if not data:
                            raise Cut(announced=True)
                        take(data)
        except Cut as cut:
            if cut.announced:
                self.client.settimeout(1)
                self.client.unwrap()

    def from_client(self, data: bytes) -> None:
        self.server.sendall(data)

    def from_server(self, data: bytes) -> None:
        self.client.sendall(data)


class Connection(Passage):
    """An HTTP/2 connection with its streams."""

    def __init__(self, proxy: Proxy, client: ssl.SSLSocket, server: ssl.SSLSocket):
        super().__init__(client, server)
        self.proxy = proxy
        self.is_honest = proxy.is_honest
        self.asked, self.answered = Reader(), Reader()
        self.preface = b""
        self.requests, self.responses = Decoder(), Decoder()
        # Header blocks without END_HEADERS yet, by side; and the server's first frame.
        self.open: dict[object, bytes] = {}
        self.first: Frame | None = None
        self.streams: dict[int, Response] = {}
        self.chance = random.Random(f"{proxy.seed} connection {proxy.requests.total()}")

    def from_client(self, data: bytes) -> None:
        self.server.sendall(data)
        if self.is_honest:
            return
        if len(self.preface) < len(PREFACE):
            missing = len(PREFACE) - len(self.preface)
            self.preface, data = self.preface + data[:missing], data[missing:]
        for frame in self.asked.take(data):
            fields = self.header_fields(frame, "client", self.requests)
            if fields is not None:
                self.request(frame.stream, dict(fields)[":path"])

    def request(self, stream: int, path: str) -> None:
        proxy = self.proxy
        proxy.requests[path] += 1
        chance = random.Random(f"{proxy.seed} {path} {proxy.requests[path]}")
        has_digest = path.startswith("/digest")
        response = Response(chance, stream, has_digest, has_size=has_digest or path.startswith("/size"), stray=self.stray)
        proxy.damage[path].append(response.done)
        self.streams[stream] = response

    def stray(self) -> int:
        """Where a frame of a response with a digest may go: nowhere, or to another such response."""
        others = [number for number, response in self.streams.items() if response.has_digest and not response.is_over]
        return self.chance.choice([*others, 0, NOBODY])

    def from_server(self, data: bytes) -> None:
        if self.is_honest:
            self.client.sendall(data)
            return
        for frame in self.answered.take(data):
            for act in self.acts(frame):
                if isinstance(act, Cut):
                    raise act
                self.client.sendall(bytes(act))

    def acts(self, frame: Frame) -> Iterator[Act]:
        """Handles one frame of the server. Header blocks are decoded and written again, so that none depends on one
        that is dropped."""
        yield from noise(self.chance, [number for number, response in self.streams.items() if not response.is_over])
        fields = self.header_fields(frame, "server", self.responses)
        if frame.type in (HEADERS, CONTINUATION):
            response = self.streams.get(frame.stream)
            if fields is not None and response and not response.is_over:
                # The first frame of the header block has END_STREAM, wherever the block ends.
                yield from response.head(list(fields), bool(self.first and self.first.ends_stream))
        elif frame.type == DATA:
            response = self.streams[frame.stream]
            if response.is_over:
                self.give_back(frame)
            else:
                yield from response.data(frame.but(payload=frame.content(), flags=frame.flags & ~PADDED))
        elif frame.type == RST_STREAM or self.chance.random() > 0.03:
            yield frame
        elif self.chance.random() < 0.5:
            yield frame
            yield frame

    def give_back(self, frame: Frame) -> None:
        """Returns the part of the connection's window that the worker does not know to be used."""
        if frame.payload:
            self.server.sendall(bytes(Frame(WINDOW_UPDATE, 0, 0, len(frame.payload).to_bytes(4, "big"))))

    def header_fields(self, frame: Frame, side: str, decoder: Decoder) -> list[tuple[str, str]] | None:
        """The fields of the block that ends with this frame."""
        if frame.type == HEADERS:
            self.open[side] = frame.content()
            if side == "server":
                self.first = frame
        elif frame.type == CONTINUATION:
            self.open[side] += frame.payload
        else:
            return None
        if not frame.flags & END_HEADERS:
            return None
        try:
            return decoder.decode(self.open.pop(side))
        except HPACKError as error:
            raise ValueError(f"header block of the {side}'s: {error}") from error

