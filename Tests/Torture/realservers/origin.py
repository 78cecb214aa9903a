"""An origin that dies during its answers: `python3 origin.py ROOT PORT`.

`/app/NAME?key=K&deaths=D&at=N&kind=KIND&tag=1&slow=S` sends the file NAME; the first D answers for the key K end after
N bytes. KIND: `chunked`, `reset` (RST), `length` (a Content-Length that is not reached), `head` (nothing after the
head). `tag`: with a strong ETag and ranges; `slow`: seconds before the head. origin.js and origin.go do the same.
"""

import re
import socket
import struct
import sys
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

BLOCK = 16384
seen: Counter[str] = Counter()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        try:
            content = (Path(sys.argv[1]) / Path(parts.path).name).read_bytes()
        except OSError:
            self.send_error(404)
            return
        time.sleep(float(query.get("slow", "0")))
        status, first = 200, 0
        tag = f'"{query["key"]}"' if "tag" in query else None
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        body = content
        if tag and asked and self.headers.get("If-Range", tag) == tag and int(asked[1]) < len(content):
            status, first = 206, int(asked[1])
            body = content[first : int(asked[2] or len(content)) + 1]
        seen[query["key"]] += 1
        is_dying = seen[query["key"]] <= int(query.get("deaths", "0"))
        kind = query.get("kind", "chunked")
        self.send_response(status)
        if tag:
            self.send_header("ETag", tag)
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{len(content)}")
        if kind == "length":
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        at = 0 if kind == "head" else int(query.get("at", "0"))
        rest = body[:at] if is_dying else body
        for start in range(0, len(rest), BLOCK):
            block = rest[start : start + BLOCK]
            self.wfile.write(block if kind == "length" else b"%x\r\n%s\r\n" % (len(block), block))
        if not is_dying:
            if kind != "length":
                self.wfile.write(b"0\r\n\r\n")
            return
        self.wfile.flush()
        # The bytes before the cut reach the client first.
        time.sleep(0.1)
        if kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
