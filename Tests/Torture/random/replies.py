"""The server's answer to one request, right or wrong. Pure: the sockets are elsewhere."""

import random
import re
from dataclasses import dataclass, replace

from trial import Resource, Step, Trial, Version

REASONS = {200: "OK", 204: "No Content", 206: "Partial Content", 304: "Not Modified", 416: "Range Not Satisfiable"}


@dataclass
class Request:
    target: str
    fields: dict[str, str]

    @property
    def range(self) -> tuple[int, int | None] | None:
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.fields.get("range", ""))
        return (int(found[1]), int(found[2]) if found[2] else None) if found else None


@dataclass
class Answer:
    status: int
    fields: list[tuple[str, str]]
    body: bytes
    framing: str
    # How the body ends, and after how many bytes, as in Step.
    end: str = "good"
    cut: int | None = None
    # For the oracle: which version it is of, and what it states about the whole.
    resource: Resource | None = None
    version: Version | None = None
    total: int | None = None
    validator: str | None = None
    # Another ending.
    code: int = 0
    # After so many bytes of the body.
    act_at: int | None = None

    @property
    def announced(self) -> int | None:
        """Content-Length."""
        if self.framing == "too long":
            return len(self.body) + 1 + self.code * 50
        if self.framing == "too short":
            return max(0, len(self.body) - 1 - self.code * 50)
        return len(self.body) if self.framing == "length" else None

    @property
    def stated_total(self) -> int | None:
        """The length of the whole, as a client reads it."""
        return self.announced if self.status == 200 and self.announced is not None else self.total

    @property
    def reach(self) -> int | None:
        """The end of the stated range: the offset after its last byte."""
        found = next((re.match(r"bytes \d+-(\d+)/", value) for name, value in self.fields if name == "content-range"), None)
        return int(found[1]) + 1 if found else None


@dataclass
class Sent:
    """What the oracle has to know about an answer."""

    run: int
    asked: tuple[int, int | None] | None
    status: int
    url: str
    version: Version | None
    total: int | None
    validator: str | None
    # All bytes that were sent as the body, and how it ended: `whole` by a length or a last chunk, `closed` by the
    # connection's end in good order, `packed` in a coding that was not requested, `cut`.
    body: bytes = b""
    how: str = "cut"
    is_page: bool = False
    # The offset after the last byte of the stated range.
    reach: int | None = None
    words: str = ""

    @classmethod
    def event(cls, run: int, words: str) -> "Sent":
        """Something else that happened to the trial."""
        return cls(run, None, 0, "", None, None, None, words=words)


def junk(count: int, salt: str) -> bytes:
    """Bytes that no version has."""
    return random.Random(salt).randbytes(count)


def page(trial: Trial, number: int) -> bytes:
    """A captive portal's page."""
    again = f" {number}" if trial.page_changes else ""
    return f"<html><title>Log in</title><p>Welcome to the network {trial.seed}{again}.</html>\n".encode()


def honest(trial: Trial) -> Step:
    return Step(framing=trial.framing)


def answer(trial: Trial, step: Step, number: int, request: Request, resource: Resource, version: Version, older: Version) -> Answer:
    """
    number: of the request within the trial.
    older: what the resource had before, if that was another."""
    if step.kind == "portal":
        return Answer(step.status or 200, [("content-type", "text/html")], page(trial, number), step.framing)
    if step.kind in ("status", "mute"):
        step = step if step.status else replace(step, status=503)
        fields = [("content-type", "text/html")]
        fields += [("retry-after", "1")] if step.status in (429, 503) else []
        body = b"" if step.status in (204, 304) else f"<h1>{step.status}</h1>\n".encode()
        return Answer(step.status, fields, body, "none" if step.status in (204, 304) else step.framing)
    content = version.content
    etag, modified = validators(step, version, older)
    fields = [("content-type", "application/octet-stream"), ("accept-ranges", "bytes")]
    fields += [("etag", one) for one in etag] + [("last-modified", one) for one in modified]
    if step.encoding:
        fields.append(("content-encoding", step.encoding))
    made = ranged(step, request, version, content, fields, etag, modified, f"{trial.seed} {number}")
    made.resource, made.version = resource, version
    made.validator = sent_validator(etag, modified)
    made.framing, made.end = step.framing, step.end
    made.code = abs(step.by) % 5
    if step.end != "good":
        made.cut = len(made.body) * step.at // 1000
    if step.act:
        made.act_at = len(made.body) * step.at // 1000
    return made


def validators(step: Step, version: Version, older: Version) -> tuple[list[str], list[str]]:
    """ETag and Last-Modified fields."""
    etag = [version.etag] if version.etag else []
    modified = [version.modified] if version.modified else []
    match step.validators:
        case "none":
            return [], []
        case "other":
            return [one[:-1] + 'x"' for one in etag], modified
        case "weak":
            return [one if one.startswith("W/") else "W/" + one for one in etag], modified
        case "two":
            return etag + ['"second"'], modified
        case "old":
            # A cache that confuses them.
            return ([older.etag] if older.etag else []), ([older.modified] if older.modified else [])
    return etag, modified


def sent_validator(etag: list[str], modified: list[str]) -> str | None:
    """As of Version."""
    if etag:
        return etag[0] if len(etag) == 1 and not etag[0].startswith("W/") else None
    return modified[0] if modified else None


def ranged(step: Step, request: Request, version: Version, content: bytes, fields: list[tuple[str, str]], etag: list[str], modified: list[str], salt: str) -> Answer:
    size = len(content)
    asked = request.range if step.ranges != "none" else None
    if asked and (condition := request.fields.get("if-range")) and step.if_range != "ignored":
        if step.if_range == "refused" or condition not in etag + modified:
            asked = None
    if step.ranges == "unsatisfied" and asked:
        # As many as the client has, if that would be so.
        total = asked[0] if step.by > 0 else size
        return Answer(416, [*fields, ("content-range", f"bytes */{total}")], b"<p>no such range\n", step.framing, total=total)
    if asked and asked[0] >= size:
        return Answer(416, [*fields, ("content-range", f"bytes */{size}")], b"<p>no such range\n", step.framing, total=size)
    if not asked:
        if step.ranges == "unasked":
            fields = [*fields, ("content-range", f"bytes 0-{size - 1}/{size}")]
            return Answer(206, fields, bodied(step, content, salt), step.framing, total=size)
        return Answer(200, fields, bodied(step, content, salt), step.framing, total=size)
    first, last = asked[0], min(size - 1, asked[1] if asked[1] is not None else size - 1)
    total, stated = str(size), None
    match step.ranges:
        case "shifted":
            moved = min(max(0, first + step.by), size - 1)
            first, last = moved, max(moved, last)
        case "short":
            last = max(first, last - abs(step.by))
        case "long":
            last = min(size - 1, last + abs(step.by))
        case "total":
            total = str(max(last + 1, size + step.by))
        case "star":
            total = "*"
        case "from 0":
            first, last = 0, size - 1
        case "garbage":
            stated = ["bytes", f"bytes {first}-{last}", f"lines {first}-{last}/{size}", f"bytes {last}-{first - 1}/{size}"][abs(step.by) % 4]
    body = bodied(step, content[first : last + 1], salt)
    line = stated or f"bytes {first}-{last}/{total}"
    if step.ranges == "multipart":
        fields = [(name, value) for name, value in fields if name != "content-type"] + [("content-type", "multipart/byteranges; boundary=B")]
        body = f"\r\n--B\r\nContent-Range: {line}\r\n\r\n".encode() + body + b"\r\n--B--\r\n"
    if step.ranges != "missing" and (step.ranges != "multipart" or step.by > 0):
        fields = [*fields, ("content-range", line)]
    if step.ranges == "two":
        fields = [*fields, ("content-range", f"bytes 0-{size - 1}/{size}")]
    return Answer(206, fields, body, step.framing, total=int(total) if total != "*" else None)


def bodied(step: Step, true: bytes, salt: str) -> bytes:
    if step.encoding in ("gzip", "br"):
        # Compressed bytes look like any others.
        return junk(len(true), salt)
    match step.body:
        case "short":
            return true[: max(0, len(true) - step.count)]
        case "surplus":
            return true + junk(step.count, salt)
        case "tail":
            # The last bytes before the cut are wrong. In an answer that is not cut nobody could see it.
            if step.end == "good" or step.at >= 1000:
                return true
            cut = len(true) * step.at // 1000
            count = min(step.count, cut)
            return true[: cut - count] + junk(count, salt) + true[cut:]
    return true
