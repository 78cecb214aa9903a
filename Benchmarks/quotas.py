"""An HTTP/1.1 server with a quota, a delay and a long memory, and a server that takes no connection."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

PIECE = 1 << 14


@dataclass
class Behaviour:
    """`quota`: requests in a window of `window` seconds; others get 429 with Retry-After. `delay`: in seconds."""

    size: int = 4096
    quota: int | None = None
    window: float = 10
    delay: float = 0


@dataclass
class Account:
    """What the server has seen: when it was asked, by perf_counter, and with what status it answered."""

    asked: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    # When answers were complete.
    ended: list[float] = field(default_factory=list)
    transfers: int = 0
    most: int = 0

    @property
    def refused(self) -> int:
        return self.statuses.count(429)

    @property
    def span(self) -> float:
        """Seconds from the first request to the last answer."""
        return self.ended[-1] - self.asked[0] if self.ended else 0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.ended) / self.span if self.ended else 0

    @property
    def shortest_pause(self) -> float:
        return min((after - before for before, after in zip(self.asked, self.asked[1:])), default=0)


class Quotas:
    """Serves the same bytes under any name, while the context lasts."""

    def __init__(self, behaviour: Behaviour):
        self.behaviour = behaviour
        self.account = Account()
        self.window = (0.0, 0)
        self.loop = asyncio.new_event_loop()

    def __enter__(self) -> "Quotas":
        listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.run, args=(listener,))
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def run(self, listener: socket.socket) -> None:
        asyncio.set_event_loop(self.loop)
        # A client that has gone is no news.
        self.loop.set_exception_handler(lambda *_: None)
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, sock=listener))
        self.loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The head and the body are two packets.
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await self.answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, writer: asyncio.StreamWriter) -> None:
        account, now = self.account, time.perf_counter()
        account.asked.append(now)
        status, wait = self.judged(now)
        account.statuses.append(status)
        account.transfers += 1
        account.most = max(account.most, account.transfers)
        try:
            if self.behaviour.delay:
                await asyncio.sleep(self.behaviour.delay)
            if status == 429:
                writer.write(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: %d\r\nContent-Length: 0\r\n\r\n" % wait)
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: %d\r\n\r\n" % self.behaviour.size)
                left = self.behaviour.size
                while left > 0:
                    piece = bytes(min(left, PIECE))
                    writer.write(piece)
                    await writer.drain()
                    left -= len(piece)
            await writer.drain()
            account.ended.append(time.perf_counter())
        finally:
            account.transfers -= 1

    def judged(self, now: float) -> tuple[int, int]:
        """The status, and in how many seconds the window ends."""
        quota, length = self.behaviour.quota, self.behaviour.window
        if quota is None:
            return 200, 0
        start, count = self.window
        if now - start >= length:
            start, count = now, 0
        self.window = (start, count + 1)
        # Rounded up, as a server does that knows that clients count from the answer.
        return (200 if count < quota else 429), int(start + length - now) + 1


@contextmanager
def dead_server() -> Iterator[str]:
    """The base URL of a server that takes no connection, as one behind a firewall: its queue is full, so the kernel
    drops what else comes."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.2", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        try:
            yield f"http://127.0.0.2:{listener.getsockname()[1]}"
        finally:
            for filler in fillers:
                filler.close()
