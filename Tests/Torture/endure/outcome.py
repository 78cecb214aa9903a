"""Checks a spool after all changes, when all jobs that can be done are done."""

import os

from accounts import Accounts, is_no_name
from server import Server
from verdict import Witness


def problems(accounts: Accounts, server: Server, witness: Witness) -> list[str]:
    found = accounts.instances()
    told = [problem for token in sorted(found.keys() | accounts.texts.keys()) for problem in text_problems(accounts, token, found[token])]
    told += payload_problems(accounts, server, found)
    for state in ("new", "cur"):
        # A file that was put into cur by hand, under a name that no job can have, belongs to no worker.
        if left := [name for name in accounts.listed(state) if state == "new" or not is_no_name(name)]:
            told.append(f"left in {state}: {len(left)}, such as {left[:3]!r}")
    came, went = witness.seen()
    told += [f"{path}: published {times} times" for path, times in came.items() if times > 1]
    return told + [f"{path}: taken away" for path in went]


def text_problems(accounts: Accounts, token: str, places: list[str]) -> list[str]:
    """Checks the number of files, and that each job that no person has spoiled has ended."""
    text = accounts.texts[token]
    if len(places) > text.files:
        return [f"{token}: {len(places)} files of it where {text.files} should be: {places}"]
    if len(places) < text.files and not text.is_uncertain:
        return [f"{token}: LOST: {len(places)} files of it where {text.files} should be: {places}"]
    states = {place.partition("/")[0] for place in places}
    if text.is_spoiled or not places:
        return []
    # Of several files with one output, one is done; for the others the output is taken.
    if "done" not in states or states - {"done", "failed"}:
        return [f"{token}: not at its end: {places}"]
    return []


def payload_problems(accounts: Accounts, server: Server, found: dict[str, list[str]]) -> list[str]:
    told = []
    payloads = set(os.listdir(accounts.spool / "files"))
    for name in sorted(payloads):
        text = accounts.texts.get(name)
        content = (accounts.spool / "files" / name).read_bytes()
        # If the URL was spoiled, the file may be another one.
        files = list(server.sizes) if text and text.is_spoiled else [text.file] if text else []
        versions = [server.version_of(file, content) for file in files]
        if not any(version is not None and (text.is_spoiled or text.version in (None, version)) for version in versions):
            told.append(f"files/{name}: its {len(content)} bytes are not what was asked for")
    for token, places in found.items():
        is_done = any(place.startswith("done/") for place in places)
        if is_done and token not in payloads and not accounts.texts[token].is_spoiled:
            told.append(f"{token}: done, without a payload")
    return told
