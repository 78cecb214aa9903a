"""A server for the jobs: `/NAME?size=BYTES&rate=BYTES` has bytes that depend on the name, a strong ETag, and ranges. It
writes a line for each request: the path and the first byte that was asked for. Only what is asked for from its start
comes at that rate, and its second half fifty times as slowly: what is to stop it comes first on any machine."""

import hashlib
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

BLOCK = 1 << 16


def payload(name: str, size: int) -> bytes:
    return hashlib.shake_128(name.encode()).digest(size)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlsplit(self.path)
        query = {key: int(values[0]) for key, values in parse_qs(url.query).items()}
        body = payload(url.path, query["size"])
        first = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        print(url.path, first, flush=True)
        self.send_response(206 if first else 200)
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()[:16]}"')
        self.send_header("Accept-Ranges", "bytes")
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - first))
        self.end_headers()
        for start in range(first, len(body), BLOCK):
            self.wfile.write(body[start : start + BLOCK])
            if query.get("rate") and not first:
                time.sleep(BLOCK / query["rate"] * (1 if start < len(body) / 2 else 50))

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
