"""Runs spoolrun, curl, wget, wget2, aria2c and axel against the lying servers of the tests: which of them present wrong
bytes as finished? `make peers` writes PEERS.md. Ends with 1 if spoolrun is among them."""

import argparse
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import report
from server import TRANSPORTS, LyingServer
from tools import PROGRAMS, Spoolrun, Tool
from trial import FALSE, Outcome, Trial, Verdict

HERE = Path(__file__).resolve().parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="peers", description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the spoolrun to try")
    parser.add_argument("--server", type=Path, required=True, help="the LyingServer of the tests")
    parser.add_argument("--tools", default="", help="comma-separated; default: all")
    parser.add_argument("--transports", default="", help="semicolon-separated; default: " + "; ".join(TRANSPORTS))
    parser.add_argument("--only", default="", help="behaviours whose names contain this")
    parser.add_argument("--parallel", type=int, default=16, help="trials at a time; default: %(default)s")
    parser.add_argument("--verbose", action="store_true", help="print each trial")
    parser.add_argument("--output", type=Path, help="the document; default: PEERS.md if nothing was left out")
    options = parser.parse_args()
    options.transports = [name.strip() for name in options.transports.split(";") if name] or TRANSPORTS
    unknown = set(options.transports) - set(TRANSPORTS)
    if unknown:
        parser.error(f"no transports {', '.join(unknown)}")
    if options.output is None and not options.tools and not options.only and options.transports == TRANSPORTS:
        options.output = HERE.parent / "PEERS.md"
    return options


def make_tools(options: argparse.Namespace, server: LyingServer) -> list[Tool]:
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        sys.exit(f"peers: not installed: {', '.join(missing)}; Benchmarks/setup does")
    wanted = options.tools.split(",") if options.tools else ["spoolrun", *PROGRAMS]
    tools: list[Tool] = [Spoolrun(str(options.program.resolve()), server)] if "spoolrun" in wanted else []
    return tools + [kind(name, server) for name, kind in PROGRAMS.items() if name in wanted]


def main() -> int:
    options = arguments()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="peers-") as root, LyingServer(options.server.resolve(), Path(root) / "server") as server:
        # So that an endless response fills neither disk nor memory.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))
        resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
        tools = make_tools(options, server)
        trials = [
            Trial(tool, behaviour, transport, length)
            for behaviour in server.behaviours
            for transport in options.transports
            for tool in tools
            for length in tool.lengths
            if behaviour.ports[transport] and options.only in behaviour.name
        ]
        # The slow ones are spread out.
        random.Random(1).shuffle(trials)
        scratch = Path(root) / "trials"
        scratch.mkdir()
        outcomes: dict[Trial, Outcome] = {}
        with ThreadPoolExecutor(options.parallel) as pool:
            for trial, outcome in zip(trials, pool.map(lambda trial: trial.run(scratch), trials)):
                outcomes[trial] = outcome
                if options.verbose:
                    print(trial.tool.name, trial.transport, trial.start, trial.behaviour.name, outcome.verdict.value, outcome.reason, sep="\t")
                elif len(outcomes) % 1000 == 0:
                    print(f"{len(outcomes)} of {len(trials)}, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        for tool in tools:
            counts = Counter(outcomes[trial].verdict.value for trial in trials if trial.tool is tool)
            print(f"{tool.name}: {', '.join(f'{count} {what}' for what, count in counts.most_common())}")
        if options.output is not None:
            options.output.write_text(report.document(outcomes, tools, time.monotonic() - begun))
            print(f"written: {options.output}", file=sys.stderr)
    own = {trial: one for trial, one in outcomes.items() if isinstance(trial.tool, Spoolrun)}
    problems = [f"{trial.behaviour.name}: {one.verdict.value}" for trial, one in own.items() if one.verdict in (*FALSE, Verdict.HUNG)]
    # A tool that completes nothing presents nothing wrong either.
    for transport, start in {(trial.transport, trial.start) for trial in own} if options.output else ():
        if not any(one.verdict is Verdict.RIGHT for trial, one in own.items() if (trial.transport, trial.start) == (transport, start)):
            problems.append(f"nothing was completed over {transport} from {start}")
    if not outcomes:
        problems.append("no trial")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


sys.exit(main())
