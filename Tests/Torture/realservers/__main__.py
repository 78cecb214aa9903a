"""Runs spoolrun against servers and proxies as distributions ship them: `make realservers`. Ends with 1 if a scenario
has another outcome than it must have."""

import argparse
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from content import Site
from rig import options_parser, workplace
from scenarios import SCENARIOS, Outcome, Scene
from servers import Forward, Place, Server, servers


def arguments() -> argparse.Namespace:
    parser = options_parser("realservers", __doc__)
    parser.add_argument("--servers", type=lambda text: text.split(","), help="comma-separated; default: all")
    parser.add_argument("--scenarios", type=lambda text: text.split(";"), help="separated by semicolons; default: all")
    parser.add_argument("--list", action="store_true", help="list them")
    return parser.parse_args()


def make_certificates(work: Path) -> tuple[Path, Path, Path]:
    made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    authority = ["-subj", "/CN=realservers", "-keyout", work / "ca.key", "-out", work / "ca.pem"]
    signed = ["-CA", work / "ca.pem", "-CAkey", work / "ca.key", "-keyout", work / "server.key", "-out", work / "server.pem"]
    signed += ["-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"]
    for extra in (authority, signed):
        subprocess.run(["openssl", "req", "-x509", *made, *extra], check=True, stderr=subprocess.DEVNULL)
    (work / "server.key").chmod(0o644)
    return work / "server.key", work / "server.pem", work / "ca.pem"


def can_play(server: Server, path: str) -> bool:
    if path == "login":
        return isinstance(server, Forward) and server.has_credentials
    if path == "proxy":
        return isinstance(server, Forward)
    return path in server.paths


def play(program: Path, place: Place, site: Site, server: Server, chosen: list[str]) -> dict[str, Outcome]:
    outcomes = {}
    server.start()
    try:
        for name in chosen:
            path, scenario = SCENARIOS[name]
            if not can_play(server, path):
                continue
            begun = time.monotonic()
            scene = Scene(program, place, site, server)
            outcome = scenario(scene)
            outcomes[name] = outcome
            mark = "  PROBLEM" if outcome.is_problem else ""
            print(f"{server.name:20} {name:24} {outcome.text}  ({time.monotonic() - begun:.1f} s, {scene.trial.spool.parent.name}){mark}", flush=True)
    finally:
        server.stop()
    return outcomes


def table(found: dict[str, dict[str, Outcome]]) -> None:
    """By scenario, its outcomes with the number of servers, and the servers where it failed."""
    print(f"\n{'scenario':24} outcome at how many servers")
    for name in SCENARIOS:
        if not (outcomes := {server: outcomes[name] for server, outcomes in found.items() if name in outcomes}):
            continue
        counts = Counter("bytes twice" if "twice" in outcome.text else outcome.text for outcome in outcomes.values() if not outcome.is_problem)
        print(f"{name:24} " + ", ".join(f"{count} {text}" for text, count in counts.most_common()))
        for server, outcome in outcomes.items():
            if outcome.is_problem or outcome.text == "cannot tell":
                print(f"{'':24}   {server}: {outcome.text}")


def main() -> int:
    options = arguments()
    with workplace(options.keep, "realservers-") as work, ExitStack() as stack:
        work.chmod(0o755)
        site = Site(work / "www")
        place = Place(work, site.root, *make_certificates(work))
        behind, tried = servers(place)
        if options.list:
            print("servers:", ",".join(server.name for server in tried), "\nscenarios:", ";".join(SCENARIOS))
            return 0
        found: dict[str, dict[str, Outcome]] = {}
        for server in behind:
            server.start()
            stack.callback(server.stop)
        for server in tried:
            if options.servers and server.name not in options.servers:
                continue
            if missing := server.missing():
                print(f"{server.name:20} LEFT OUT: there is no {', '.join(missing)}; Tests/Torture/realservers/setup installs it", flush=True)
                continue
            found[server.name] = play(options.program.resolve(), place, site, server, options.scenarios or list(SCENARIOS))
            # The server of the files is among those that are tested, and stopped.
            behind[1].start()
        table(found)
        problems = sum(outcome.is_problem for outcomes in found.values() for outcome in outcomes.values())
        print(f"{sum(map(len, found.values()))} scenarios at {len(found)} servers, {problems} problems")
        return 1 if problems or not found else 0


if __name__ == "__main__":
    sys.exit(main())
