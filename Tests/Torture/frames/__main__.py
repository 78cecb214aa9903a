"""Fuzzes HTTP/2: between nginx and the worker a proxy damages frames at random; a seed draws the damage. What is in
done/ must be the file, byte for byte; the worker must neither crash nor hang; no job may be lost; and once the proxy is
honest, three runs must end each job. Ends with 1 otherwise. `make frames`."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import zlib
from collections import Counter
from pathlib import Path

from origin import Origin
from proxy import Proxy
from rig import options_parser, workplace

# Runs with a dishonest proxy, and then with an honest one.
ROUNDS, LAST_ROUNDS = 5, 3
# Seconds for a run that should take two or three.
TIME_LIMIT = 90
# Permanent failures that the proxy can cause: three times other bytes than the CRC-32, or a status.
LAWFUL = re.compile(r"mismatch|http-\d+")


def arguments() -> argparse.Namespace:
    parser = options_parser("frames", __doc__, seed="the first seed; each trial after it takes the next")
    parser.add_argument("--minutes", type=float, default=5, help="how long to begin with new seeds; default: %(default)s")
    parser.add_argument("--seeds", type=int, default=0, help="how many, if not as many as there is time for")
    return parser.parse_args()


class Trial:
    """Runs one seed: a spool with a job for each file, until its end."""

    def __init__(self, program: Path, work: Path, origin: Origin, proxy: Proxy, seed: int):
        self.program = program
        self.spool = work / str(seed)
        self.origin = origin
        self.proxy = proxy
        self.seed = seed
        self.findings: list[str] = []
        self.codes: Counter[str] = Counter()

    def run(self) -> None:
        self.proxy.begin(self.seed)
        subprocess.run([self.program, "init", self.spool], check=True, capture_output=True)
        for file, content in self.origin.files.items():
            self.drop(file, content)
        for number in range(ROUNDS + LAST_ROUNDS):
            self.proxy.is_honest = number >= ROUNDS
            self.work(f"run {number + 1}")
            self.judge(f"run {number + 1}")
            if self.findings:
                return
            self.make_due()
        for file in self.origin.files:
            if not (self.spool / "done" / job(file)).exists():
                self.found(file, f"is not done after {LAST_ROUNDS} honest runs")

    def drop(self, file: str, content: bytes) -> None:
        declared = {"size": f"size: {len(content)}\n", "digest": f"crc32: {zlib.crc32(content):08X}\n"}.get(file.split("/")[0], "")
        text = f"url: https://127.0.0.1:{self.proxy.port}/{file}\noutput: {job(file)}\nattempts: 1000\ntimeout: 2s 30s\n{declared}"
        draft = self.spool / "tmp" / job(file)
        draft.write_text(text)
        draft.rename(self.spool / "new" / job(file))

    def work(self, what: str) -> None:
        command = [self.program, "--once", "--jobs", "8", "--per-host", "8", "--cacert", self.origin.certificate, self.spool]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.spool), "LC_ALL": "C.UTF-8"}
        with (self.spool.parent / f"{self.seed}.log").open("ab") as log:
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, timeout=TIME_LIMIT)
                if done.returncode not in (0, 1, 75):
                    self.findings.append(f"{what}: the worker ended with {done.returncode}")
            except subprocess.TimeoutExpired:
                self.findings.append(f"{what}: the worker hung")

    def judge(self, what: str) -> None:
        for file, content in self.origin.files.items():
            name = job(file)
            places = [state for state in ("new", "partial", "done", "failed") if (self.spool / state / name).exists()]
            if len(places) != 1:
                self.found(file, f"{what}: it is in {places or 'no state'}")
            payload = self.spool / "files" / name
            if payload.exists() != (places == ["done"]):
                self.found(file, f"{what}: in {places}, and its payload " + ("exists" if payload.exists() else "does not exist"))
            elif payload.exists() and (published := payload.read_bytes()) != content:
                same = next((at for at, (one, other) in enumerate(zip(published, content)) if one != other), min(len(published), len(content)))
                self.found(file, f"{what}: WRONG BYTES published, {len(published)} for {len(content)}, the same below {same}")
            elif places and places != ["done"]:
                codes = re.findall(r"^failed: .* code=(\S+)", (self.spool / places[0] / name).read_text(errors="replace"), re.MULTILINE)
                self.codes.update(codes[-1:])
                if places == ["failed"] and not LAWFUL.fullmatch(codes[-1]):
                    self.found(file, f"{what}: given up as {codes[-1]}")

    def found(self, file: str, what: str) -> None:
        self.findings.append(f"{file} {what}; its responses: {self.proxy.damage[f'/{file}']}")

    def make_due(self) -> None:
        for file in (self.spool / "failed").iterdir():
            if file.suffix != ".part":
                file.rename(self.spool / "new" / file.name)
        for file in (self.spool / "partial").iterdir():
            if file.suffix != ".part":
                os.utime(file)


def job(file: str) -> str:
    return file.replace("/", "-")


def main() -> int:
    options = arguments()
    begun = time.monotonic()
    total, answered, damaged, findings = 0, 0, 0, 0
    codes: Counter[str] = Counter()
    with workplace(options.keep, "frames-") as work, Origin(work) as origin, Proxy(origin.certificate, origin.key, origin.port) as proxy:
        seed = options.seed
        while total < options.seeds if options.seeds else time.monotonic() - begun < options.minutes * 60:
            trial = Trial(options.program.resolve(), work, origin, proxy, seed)
            trial.run()
            for finding in trial.findings:
                print(f"seed {seed}: {finding}", flush=True)
            findings += len(trial.findings)
            done = [one for responses in proxy.damage.values() for one in responses]
            answered += len(done)
            damaged += sum(bool(one) for one in done)
            codes += trial.codes
            if not (trial.findings and options.keep):
                shutil.rmtree(trial.spool)
            total, seed = total + 1, seed + 1
        for problem in proxy.problems:
            print(f"the proxy itself: {problem}")
    print(f"{total} seeds, {answered} responses over HTTP/2, {damaged} of them damaged: {findings} findings")
    print(f"after runs, jobs waited with: {', '.join(f'{code} {count}' for code, count in codes.most_common())}")
    return 1 if findings or proxy.problems or not damaged else 0


sys.exit(main())
