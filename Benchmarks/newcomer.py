"""Rows of what a person types who knows only the name of each tool: no option makes it fast, and files have to be there
and, where a list of checksums is, verified."""

import hashlib
import shlex
import shutil
from pathlib import Path

from clients import expect_same
from distance import Way, relay
from measuring import Candidate, Failed, alternate
from row import Bench, Goal, Result

# What a person writes who follows pooch's own documentation; pip has it beside the other tools (Benchmarks/newest).
POOCH = """import sys, pooch
registry = dict(reversed(line.split()) for line in open(sys.argv[1]))
fetcher = pooch.create(path=".", base_url=sys.argv[2] + "/", registry=registry)
for name in registry:
    fetcher.fetch(name)
"""
WAY = Way(50, 5)


def typed(bench: Bench, name: str, sources: list[Path], script: str) -> Candidate:
    """A line of a shell in an empty directory, by somebody who has never used the tool."""
    def prepare() -> None:
        bench.clients.fresh()
        shutil.rmtree(bench.scratch.root / ".local", ignore_errors=True)

    def check(thorough: bool) -> None:
        for source in sources:
            expect_same(source, bench.clients.out / source.name, thorough)

    return Candidate(name, ["sh", "-c", f"cd {bench.clients.out} && {script}"], prepare, check)


def list_of_checksums(bench: Bench, base: str, sources: list[Path]) -> list[Candidate]:
    sums, urls, links = (bench.scratch.root / name for name in ("SHA256SUMS", "urls", "aria2-urls"))
    digests = {source.name: hashlib.sha256(source.read_bytes()).hexdigest() for source in sources}
    sums.write_text("".join(f"{digest}  {name}\n" for name, digest in digests.items()))
    urls.write_text("".join(f"{base}/{name}\n" for name in digests))
    links.write_text("".join(f"{base}/{name}\n  checksum=sha-256={digest}\n" for name, digest in digests.items()))
    verified = f"sha256sum --check --quiet {sums}"
    python = Path(shutil.which("curl") or "").resolve().parent.parent / "python/bin/python"
    lines = {
        "spoolrun": f"{bench.program} get --from {sums} --base {base}",
        "curl, then sha256sum": f"xargs curl -sS --remote-name-all < {urls} && {verified}",
        "curl -Z, then sha256sum": f"xargs curl -sSZ --remote-name-all < {urls} && {verified}",
        "wget, then sha256sum": f"wget -q -i {urls} && {verified}",
        "wget2, then sha256sum": f"wget2 -q -i {urls} && {verified}",
        "aria2c": f"aria2c -q -i {links}",
    }
    if python.exists():
        lines["pooch"] = f"{python} -c {shlex.quote(POOCH)} {sums} {base} 2>/dev/null"
    return [typed(bench, name, sources, line) for name, line in lines.items()]


def checksums(bench: Bench) -> Result:
    """At the loopback for the goal, and over a distance for the table."""
    count = bench.size(300, 100)
    sources = bench.server.add_files("tree-sums", count, 100_000)
    result = Result(f"{count} files of 100 kB and their SHA256SUMS, from the command to verified files, each tool as it comes", rates=("files/s", count))
    result.series = alternate(bench.runner, list_of_checksums(bench, f"{bench.server.http}/{sources[0].parent.name}", sources), bench.runs)
    with relay(bench, WAY) as base:
        far = alternate(bench.runner, list_of_checksums(bench, f"{base}/{sources[0].parent.name}", sources), min(bench.runs, 3))
    result.table = [[str(WAY), *far], ["s", *("failed" if one.failure else f"{one.wall:.2f}" for one in far.values())]]
    wall = result.series["spoolrun"].wall if result.series["spoolrun"].costs else None
    result.goals = [Goal("from the command to verified files", wall, 0.3, "s")]
    result.goals.append(beside_the_best("the same at a distance", far))
    return result


def beside_the_best(what: str, series: dict) -> Goal:
    others = {name: one.wall for name, one in series.items() if name != "spoolrun" and not one.failure}
    ours = series["spoolrun"]
    if ours.failure or not others:
        raise Failed(ours.failure or "no other tool has finished")
    best = min(others, key=others.get)
    return Goal(f"{what}, the fastest other, {best}", ours.wall / others[best], 1.0)


def one_file(bench: Bench) -> Result:
    """A small and a larger file at a distance."""
    result = Result(f"One file, each tool as it comes; {WAY}")
    for size in (100_000, bench.size(50, 10) * 1_000_000):
        source = bench.server.add_file(f"one-{size}", size)
        with relay(bench, WAY) as base:
            url = f"{base}/{source.name}"
            lines = {
                "spoolrun": f"{bench.program} get {url}",
                "curl": f"curl -sSO {url}", "wget": f"wget -q {url}", "wget2": f"wget2 -q {url}",
                "aria2c": f"aria2c -q {url}", "axel": f"axel -q {url}", "rclone": f"rclone copyurl -a {url} .",
            }
            series = alternate(bench.runner, [typed(bench, name, [source], line) for name, line in lines.items()], bench.runs)
        source.unlink()
        if not result.table:
            result.table = [["size", *(f"{name}, s" for name in series)]]
        result.table.append([f"{size / 1e6:g} MB", *("failed" if one.failure else f"{one.wall:.2f}" for one in series.values())])
        result.goals.append(beside_the_best(f"{size / 1e6:g} MB", series))
    return result
