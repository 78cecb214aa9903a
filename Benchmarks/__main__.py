"""Compares spoolrun with curl, wget, wget2, aria2c and axel, on one machine and in one run: `make bench`.

Prints each row when it is done. Writes the document after all rows, or to --output.
"""

import argparse
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import distance
import growth
import idle
import lists
import machine
import many
import newcomer
import report
import resume
import servers
import single
import waiting
from clients import Clients
from measuring import Failed, Runner
from row import Bench, Result
from scratch import AS_IT_IS, MAKERS, Scratch
from server import Server

HERE = Path(__file__).parent

ROWS: dict[str, Callable[[Bench], Result]] = {
    "large-http": single.large_http,
    "large-https": single.large_https,
    "digest": single.digest,
    "connections": single.connections,
    "small": many.small,
    "medium": many.medium,
    "idle-once": idle.idle_once,
    "resume": resume.resume,
    "list": lists.one_list,
    "list-million": lists.million_lines,
    "million": waiting.million,
    "idle-watch": idle.idle_watch,
    "rss": single.rss,
    "far-large": distance.far_large,
    "far-small": distance.far_small,
    "newcomer-list": newcomer.checksums,
    "newcomer-one": newcomer.one_file,
}
GROWTH: dict[str, Callable[[Bench], Result]] = {
    "growth-jobs": growth.growth_jobs,
    "growth-receipts": growth.growth_receipts,
    "growth-sizes": growth.growth_sizes,
    "growth-connections": growth.growth_connections,
    "growth-workers": growth.growth_workers,
    "growth-distance-large": distance.growth_distance_large,
    "growth-distance-small": distance.growth_distance_small,
}
SERVERS: dict[str, Callable[[Bench], Result]] = {
    "quota": servers.quota,
    "away": servers.away,
    "one-of-ten": servers.one_of_ten,
    "together": servers.together,
    "pace": servers.pace,
    "defaults": servers.defaults,
}
# Groups of rows that have a document of their own.
GROUPS = {"growth": (GROWTH, "GROWTH.md"), "servers": (SERVERS, "SERVERS.md")}
ALL = ROWS | GROWTH | SERVERS


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="Benchmarks", description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the spoolrun to measure")
    parser.add_argument("--rows", default="", help="comma-separated; growth or servers: all of GROWTH.md or SERVERS.md; default: all of RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, to see whether it works")
    parser.add_argument("--runs", type=int, default=5, help="of each candidate; default: %(default)s")
    parser.add_argument("--scratch", type=Path, default=HERE.parent / ".build" / "bench", help="where files go; removed afterwards")
    parser.add_argument("--fs", choices=[*MAKERS, AS_IT_IS], default="ext4", help="the file system to measure on; none: that of --scratch; default: %(default)s")
    parser.add_argument("--output", type=Path, help="the document; default: that of the rows, if all of them run")
    parser.add_argument("--update", type=Path, help="a document in which these rows are replaced")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs wants a number from 1 on")
    if not options.program.is_file():
        parser.error(f"no program {options.program}: make")
    options.names = [name for name in options.rows.replace(",", " ").split()] or list(ROWS)
    if len(options.names) == 1 and options.names[0] in GROUPS:
        options.names = list(GROUPS[options.names[0]][0])
    unknown = [name for name in options.names if name not in ALL]
    if unknown:
        parser.error(f"no rows {', '.join(unknown)}; there are {', '.join(ALL)}")
    for rows, document in ((ROWS, "RESULTS.md"), *GROUPS.values()):
        if options.output is None and options.names == list(rows):
            options.output = HERE / document
    return options


def main() -> int:
    options = arguments()
    missing = [tool for tool in machine.TOOLS[1:] if shutil.which(tool) is None and tool != "nginx"]
    if missing:
        sys.exit(f"benchmark: not installed: {', '.join(missing)}; Benchmarks/setup does")
    results: dict[str, Result] = {}
    failed = False
    with Scratch(options.scratch, options.fs) as scratch, Server(scratch.root) as server:
        program = options.program.resolve()
        facts = machine.describe(program, scratch)
        clients = Clients(program, scratch)
        bench = Bench(program, scratch, server, clients, Runner(scratch.root), options.runs, options.quick)
        for name in options.names:
            print(f"{name} …", file=sys.stderr, flush=True)
            try:
                results[name] = ALL[name](bench)
            except Failed as failure:
                results[name] = Result("Failed", notes=[f"Failed: {failure}"])
                failed = True
            failed = failed or any(one.failure for one in results[name].series.values())
            goals = [report.goal_row(name, goal) for goal in results[name].goals]
            lines = report.section(name, results[name], bench)
            print("\n".join([*lines, *report.table([["row", "beside", "measured", "goal", "met"], *goals])]), flush=True)
        if options.update is not None:
            options.update.write_text(report.updated(options.update.read_text(), results, bench, facts))
            print(f"updated: {options.update}", file=sys.stderr)
        elif options.output is not None:
            options.output.write_text(report.document(results, bench, facts))
            print(f"written: {options.output}", file=sys.stderr)
    return 1 if failed else 0


sys.exit(main())
