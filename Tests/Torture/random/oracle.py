"""Judges what is in done/: it must be exactly one version of one resource that the job's URLs lead to, or belong to a
class that no client can detect. These classes are few, and counted."""

import re
import zlib
from dataclasses import dataclass
from itertools import groupby, zip_longest

from replies import Sent
from trial import Job, Resource, Trial, Version

# The number of consecutive bytes that no version has at their place; fewer may be chance.
NO_CHANCE = 4

RIGHT = "right"
# A body without a length that ended with the connection, in good order: the receipt says so.
CLOSED = "closed: a body without length, cut in good order, and the receipt says unproven=length"
# The server said that this is the whole: by a length, a last chunk, or a total.
STATED = "stated: the server presented other bytes, or fewer, as the whole"
# The user declares the length, and nothing contradicts it.
DECLARED = "declared: a cut body whose length is not stated, and is the size that the job declares"
# As of a file that is stored packed.
PACKED = "packed: a body in a coding that was not asked for, of the length that the job declares"
# Against RFC 9110 section 8.8.1.
SAME = "same validator: two versions of one resource under one strong validator and of one size"
# An answer to If-Range needs no Last-Modified (RFC 9110 section 15.3.7), so nothing shows that the server ignored the
# condition.
SILENT = "silent: a part without a validator, by a server that ignores If-Range, of a version of the same size"
# Only the query differs, which may be a signature.
QUERY = "query: two resources of one origin and path, and of one validator and size"


class Wrong(Exception):
    """kind: of which kind."""

    def __init__(self, kind: str, text: str):
        super().__init__(text)
        self.kind = kind


@dataclass
class Receipt:
    size: int
    crc32: int
    is_unproven: bool

    @classmethod
    def of(cls, text: str) -> "Receipt":
        verified = re.findall(r"^verified: \S+ size=(\d+) crc32=([0-9A-F]{8})", text, re.MULTILINE)
        done = re.findall(r"^done: (.*)", text, re.MULTILINE)
        if not done:
            raise Wrong("receipt", "done, and no receipt")
        if not verified:
            raise Wrong("receipt", "done, and not verified")
        return cls(int(verified[-1][0]), int(verified[-1][1], 16), "unproven=length" in done[-1])


def explain(trial: Trial, job: Job, payload: bytes, text: str, log: list[Sent]) -> str:
    """The class of a payload.

    job: as it was when it was done; text: the receipt.
    Raises: Wrong."""
    receipt = Receipt.of(text)
    if (receipt.size, receipt.crc32) != (len(payload), zlib.crc32(payload)):
        raise Wrong("receipt", f"the receipt says {receipt.size} bytes, and there are {len(payload)}")
    wanted = trial.final(job)
    if job.declares_size and len(payload) != wanted.size:
        raise Wrong("declared", f"{len(payload)} bytes, and {wanted.size} are declared")
    if job.declares_crc32 and zlib.crc32(payload) != zlib.crc32(wanted.content):
        raise Wrong("declared", "another CRC-32 than is declared")
    own = [resource for url in job.urls for resource in trial.leads_to(url)]
    # Also those that it led to before it was edited or a redirect changed: a link with a new signature continues the
    # data.
    asked = {one.url for one in log if one.version is not None}
    earlier = [resource for resource in trial.resources if resource.url in asked and resource not in own]
    if any(payload == version.content for resource in own for version in resource.versions):
        return RIGHT
    for answer in log:
        if answer.status == 200 and answer.how == "closed" and answer.body == payload and receipt.is_unproven:
            return CLOSED
    if any(answer.how == "whole" and answer.status == 200 and answer.body == payload and is_believable(answer, log) for answer in log):
        return STATED
    if is_stated_total(payload, own, log):
        return STATED
    if job.declares_size and (is_begin_without_total(payload, log) or any(one.how == "closed" and one.body == payload for one in log)):
        return DECLARED
    if job.declares_size and any(one.how == "packed" and one.body and payload.startswith(one.body) for one in log):
        return PACKED
    return spliced(own + earlier, payload, log) or raise_wrong(trial, own, payload, log)


def is_believable(answer: Sent, log: list[Sent]) -> bool:
    """A page that comes during a download is accepted if one that looks the same comes again in a later run."""
    if not answer.is_page or not answer.asked or answer.asked[0] == 0:
        return True
    # Pages that look the same have the same length, if it was stated.
    return len({other.run for other in log if other.is_page and other.total == answer.total}) > 1


def is_stated_total(payload: bytes, own: list[Resource], log: list[Sent]) -> bool:
    """Whether the payload is the start of a version whose length the server stated as the payload's, and had not stated
    otherwise."""
    for number, answer in enumerate(log):
        if answer.version is None or answer.total != len(payload) or not answer.version.content.startswith(payload):
            continue
        if answer.status == 200 and answer.how != "whole" and is_contradicted(answer, log[number + 1 :]):
            continue
        if answer.status != 416 or not knows_other_total(log[:number], answer):
            return True
    return False


def is_contradicted(answer: Sent, later: list[Sent]) -> bool:
    """Whether a later range of the same version showed that the file is longer or shorter than the answer said."""
    parts = [one for one in later if one.status == 206 and one.url == answer.url and one.validator == answer.validator]
    return any(one.total not in (None, answer.total) or (one.reach or 0) > answer.total for one in parts)


def is_begin_without_total(payload: bytes, log: list[Sent]) -> bool:
    """Whether the payload is the start of a version whose length the server did not state."""
    sent = [one for one in log if one.version is not None and one.version.content.startswith(payload) and one.status in (200, 206)]
    # All of it came in one answer, or in parts of which none stated the length.
    if any(one.status == 200 and one.total is None and one.body == payload for one in sent):
        return True
    return any(one.body for one in sent) and all(one.total is None for one in sent)


def knows_other_total(before: list[Sent], answer: Sent) -> bool:
    """Whether the answers for the resource, since its start, stated another total."""
    of_it = [one for one in before if one.url == answer.url and one.status in (200, 206) and one.version is not None]
    begin = max((number for number, one in enumerate(of_it) if one.asked is None or one.asked[0] == 0), default=0)
    return any(one.total not in (None, answer.total) for one in of_it[begin:])


def spliced(own: list[Resource], payload: bytes, log: list[Sent]) -> str | None:
    """The class of a splice of versions that nothing distinguishes."""
    own_urls = {resource.url: resource for resource in own}
    strong = [(resource, version, version.validator) for resource in own for version in resource.versions if version.validator]
    # The validators that they were sent with.
    for one in log:
        if one.url in own_urls and one.version is not None and one.validator and (own_urls[one.url], one.version, one.validator) not in strong:
            strong.append((own_urls[one.url], one.version, one.validator))
    for resource, version, validator in strong:
        if version.size != len(payload):
            continue
        # Their sizes distinguish versions, unless the server does not state these.
        is_mute = any(one.url == resource.url and one.status in (200, 206) and one.total is None for one in log)
        alike = [(place, other.content) for place, other, its in strong if its == validator and (is_mute or other.size == version.size)]
        if is_made_of(payload, [content for place, content in alike if place is resource]):
            return SAME
        if is_made_of(payload, [version.content, *silent_parts(resource, version, log)]):
            return SILENT
        if is_made_of(payload, [content for place, content in alike if (place.host, place.path) == (resource.host, resource.path)]):
            return QUERY
    return None


def silent_parts(resource: Resource, version: Version, log: list[Sent]) -> list[bytes]:
    """Which other versions of its size came in parts without a validator, while the data had only a date."""
    if version.etag:
        return []
    parts = [one for one in log if one.url == resource.url and one.status == 206 and one.asked and one.asked[0] > 0 and not one.validator]
    return [one.version.content for one in parts if one.version is not None and one.version.size == version.size]


def is_made_of(payload: bytes, contents: list[bytes]) -> bool:
    return len(contents) > 1 and all(byte in column for byte, column in zip(payload, zip_longest(*contents), strict=False))


def raise_wrong(trial: Trial, own: list[Resource], payload: bytes, log: list[Sent]) -> str:
    versions = [(resource, number, version) for resource in trial.resources for number, version in enumerate(resource.versions)]
    for resource, number, version in versions:
        if version.content == payload:
            raise Wrong("other resource", f"version {number} of {resource.url}, where the job's URL does not lead")
    for answer in log:
        if answer.body == payload and answer.is_page and not is_believable(answer, log):
            raise Wrong("page", "a page that came in the middle of the download")
    for answer in log:
        if answer.body == payload and answer.how == "closed":
            raise Wrong("unproven", f"{len(payload)} bytes of a body without length, and the receipt does not say so")
    for resource, number, version in versions:
        if version.content.startswith(payload):
            raise Wrong("cut", f"{len(payload)} of the {version.size} bytes of version {number} of {resource.url}")
    made = pieces(payload, versions)
    raise Wrong("junk" if "?" in made else "splice", made)


def pieces(payload: bytes, versions: list[tuple[Resource, int, Version]]) -> str:
    """The pieces that the payload consists of."""
    found = []
    for at in range(0, len(payload), NO_CHANCE):
        piece = payload[at : at + NO_CHANCE]
        of = [f"{resource.url} v{number}" for resource, number, version in versions if version.content[at : at + NO_CHANCE] == piece]
        found.append(of[0] if of else "?")
    # A piece that has bytes of two versions belongs to none.
    runs, at = [], 0
    for what, group in groupby(found):
        count = len(list(group))
        runs.append(f"{at * NO_CHANCE}-: {what}")
        at += count
    return f"{len(payload)} bytes: " + ", ".join(runs[:8])
