"""Rows of one large file."""

import hashlib
import subprocess

from measuring import Candidate, alternate
from row import Bench, Goal, Result
from server import SLOW

GIB = 1 << 30


def sized(count: int) -> str:
    """4294967296 as 4 GiB."""
    for unit, name in ((GIB, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:g} {name}"
    return f"{count} bytes"


def disk(bench: Bench, size: int) -> Candidate:
    """Writes as many bytes from memory to the disk: no tool that makes them durable can be faster."""
    output = str(bench.clients.out / "zeros")
    command = ["dd", "if=/dev/zero", f"of={output}", "bs=1M", f"count={size >> 20}", "conv=fdatasync", "status=none"]
    return Candidate("dd, to the disk", command, bench.clients.fresh)


# Nothing that they fetched is on the disk when they end.
UNFLUSHED = ["curl", "wget", "wget2", "axel -n4"]
FLUSHED = ["curl, then sync -f", "wget2, then sync -f", "aria2c -x4"]


def large(bench: Bench, base: str, title: str, *, trust: dict[str, list[str]]) -> Result:
    """`trust`: the options with which each tool trusts the server's certificate."""
    size = bench.size(2 * GIB, GIB // 2)
    source = bench.server.add_file("large", size)
    url = f"{base}/large"
    clients = bench.clients
    curl, wget, wget2 = trust.get("curl", []), trust.get("wget", []), trust.get("wget2", [])
    candidates = [
        clients.spoolrun([url], [source], *trust.get("spoolrun", [])),
        clients.curl(url, source, *curl),
        clients.wget(url, source, *wget),
        clients.wget2(url, source, *wget2),
        clients.axel(url, source, 4, *trust.get("axel", [])),
        clients.aria2(url, source, 4, *trust.get("aria2c", [])),
        clients.curl_then_sync(url, source, *curl),
        clients.wget2_then_sync(url, source, *wget2),
        clients.curl_then_rhash(url, source, *curl),
        disk(bench, size),
    ]
    result = Result(f"One file of {sized(size)} over {title}", rates=("MB/s", size / 1e6))
    result.series = alternate(bench.runner, candidates, bench.runs)
    unflushed, flushed = result.fastest(UNFLUSHED), result.fastest(FLUSHED)
    result.goals = [
        Goal(f"the fastest that does not flush, {unflushed}", result.ratio("spoolrun", unflushed), 1.1),
        Goal(f"the fastest that flushes, {flushed}", result.ratio("spoolrun", flushed), 0.6),
    ]
    result.notes.append("spoolrun's time ends when the file is on disk; that of curl, wget, wget2 and axel, when it is in the page cache.")
    source.unlink()
    return result


def large_http(bench: Bench) -> Result:
    return large(bench, bench.server.http, "http", trust={})


def large_https(bench: Bench) -> Result:
    return large(bench, bench.server.https, "https", trust=bench.clients.trust(str(bench.server.ca)))


def digest(bench: Bench) -> Result:
    """A SHA-256 that the job declares, beside the CRC-32 that every job gets."""
    size = bench.size(2 * GIB, GIB // 2)
    source = bench.server.add_file("large", size)
    url = f"{bench.server.http}/large"
    with open(source, "rb") as file:
        value = hashlib.file_digest(file, "sha256").hexdigest()
    name = "spoolrun, sha256: declared"
    candidates = [
        bench.clients.spoolrun([url], [source]),
        bench.clients.spoolrun([f"url: {url}\nsha256: {value}"], [source], name=name),
    ]
    result = Result(f"One file of {sized(size)} over http, with and without a SHA-256", rates=("MB/s", size / 1e6))
    result.series = alternate(bench.runner, candidates, bench.runs)
    result.goals = [Goal("itself without sha256:", result.ratio(name, "spoolrun"), 1.2)]
    source.unlink()
    return result


def connections(bench: Bench) -> Result:
    size = bench.size(GIB, GIB // 4)
    result = Result(
        f"One file of {sized(size)} from a server that gives each connection {SLOW} MiB/s", rates=("MB/s", size / 1e6)
    )
    usage = subprocess.run([bench.program, "run", "--help"], capture_output=True, text=True, check=True).stdout
    if "--connections" not in usage:
        result.notes.append("Skipped: this spoolrun has no --connections.")
        return result
    source = bench.server.add_file("slowed", size)
    url = f"{bench.server.http}/slow/slowed"
    candidates = [
        bench.clients.spoolrun([url], [source], "--connections", "8"),
        bench.clients.aria2(url, source, 8),
        bench.clients.axel(url, source, 8),
    ]
    result.series = alternate(bench.runner, candidates, bench.runs)
    for peer in ("aria2c -x8", "axel -n8"):
        # These are rates, so the ratio is inverted.
        result.goals.append(Goal(f"{peer} (rate)", result.ratio(peer, "spoolrun"), 1.0, at_least=True))
    source.unlink()
    return result


def rss(bench: Bench) -> Result:
    size = bench.size(GIB, GIB // 4)
    source = bench.server.add_file("middling", size)
    url = f"{bench.server.http}/middling"
    candidates = [bench.clients.spoolrun([url], [source]), bench.clients.curl(url, source)]
    result = Result(f"Memory of one transfer of {sized(size)}", rates=("MB/s", size / 1e6))
    result.series = alternate(bench.runner, candidates, bench.runs)
    ours = result.series["spoolrun"]
    result.goals = [Goal("peak resident set", None if ours.failure else ours.median("rss") / (1 << 20), 20, "MiB")]
    source.unlink()
    return result
