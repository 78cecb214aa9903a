"""Runs many trials in one spool: runs of the worker, changes by a person in between, kills and power cuts. Checks what
must hold after each run."""

import asyncio
import contextlib
import json
import os
import random
import re
import shutil
import signal
import time
import uuid
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import oracle
from oracle import Wrong
from replies import Sent
from server import Play, Server
from trial import SECRET, Gesture, Job, Trial

# Shows another boot id to the program, in its own mount namespace.
OTHER_BOOT = 'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"'
STATES = ["new", "cur", "partial", "done", "failed", "hold"]
# Seconds after which a run hangs.
LIMIT = 300
# The number of runs with an honest server after which all jobs must be done. A run in which a job's short timeout has
# passed says only that the machine was busy: it does not count, up to this number.
HONEST_RUNS = 3
MOST_HONEST_RUNS = 30
# How an attempt ends whose timeout has passed.
TIMEOUTS = ("code=connect ", "code=stalled ")


@dataclass
class Finding:
    """A finding. `trial`: the trial that it belongs to; the first of the batch if that is unknown."""

    trial: Trial
    kind: str
    text: str
    # What went over the wire.
    log: list[Sent] = field(default_factory=list)


@dataclass
class Tally:
    """What was tried, and the results."""

    trials: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        self.trials += other.trials
        self.classes += other.classes
        self.events += other.events


@dataclass
class Dropped:
    """A job in the spool."""

    play: Play
    job: Job
    name: str
    is_cancelled: bool = False
    # It was paused or cancelled while it ran, perhaps while its payload was published.
    was_moved: bool = False
    state: str = "new"
    path: Path = Path()


def holders(path: Path) -> list[str]:
    """The processes that have the file open, and its times."""
    status = path.stat()
    found = [f"nobody: changed {time.time() - status.st_mtime:.1f} s ago, {status.st_size} bytes, {oct(status.st_mode)}"]
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if link.stat().st_ino == status.st_ino and link.stat().st_dev == status.st_dev:
                found.append(f"{link.parent.parent.name} {(link.parent.parent / 'comm').read_text().strip()} as {os.readlink(link)}")
    return found[1:] or found


class Batch:
    def __init__(self, program: Path, server: Server, work: Path, trials: list[Trial], can_reboot: bool):
        self.program = program
        self.server = server
        self.work = work
        self.spool = work / "spool"
        self.can_reboot = can_reboot
        self.trials = trials
        self.workers: list[asyncio.subprocess.Process] = []
        # Whether it was told to stop.
        self.stopped: set[int] = set()
        self.boot: Path | None = None
        self.cuts = 0
        # The power is off, until no worker is left and the lost data is lost.
        self.is_cut = False
        self.alive = 0
        self.findings: list[Finding] = []
        self.tally = Tally(len(trials))
        self.is_over = False
        self.jobs: list[Dropped] = []

    # MARK: the steps of a batch

    async def play(self) -> None:
        self.work.mkdir()
        for name in ["tmp", "files", *STATES]:
            (self.spool / name).mkdir(parents=True)
        plays = [self.server.enter(trial, self.act) for trial in self.trials]
        for play in plays:
            for number, job in enumerate(play.trial.jobs):
                self.jobs.append(Dropped(play, replace(job, urls=list(job.urls)), f"t{play.slot}.{number}"))
        try:
            for dropped in self.jobs:
                self.drop(dropped)
            for run in range(max(trial.runs for trial in self.trials)):
                for play in plays:
                    play.run = run
                    play.is_honest = play.is_honest or run >= play.trial.runs
                await self.run()
                for dropped in self.jobs:
                    self.steer(dropped, run)
            for play in plays:
                play.is_honest = True
            counted = 0
            for run in range(MOST_HONEST_RUNS):
                for play in plays:
                    play.run = 100 + run
                for dropped in self.jobs:
                    self.settle(dropped)
                left = [dropped for dropped in self.jobs if dropped.state != "done" and not dropped.is_cancelled]
                if counted == HONEST_RUNS or run > 0 and not left:
                    break
                ends = [self.ends(dropped) for dropped in left]
                await self.run()
                if not any(self.has_timed_out(dropped, before) for dropped, before in zip(left, ends)):
                    counted += 1
            self.judge()
        finally:
            self.is_over = True
            for worker in self.workers:
                self.kill(worker)
                await worker.wait()
            for play in plays:
                self.server.leave(play)
                self.findings += [Finding(play.trial, *problem.split(": ", 1)) for problem in play.problems]

    def found(self, dropped: Dropped, kind: str, text: str) -> None:
        self.findings.append(Finding(dropped.play.trial, kind, f"{dropped.name}: {text}", dropped.play.sent))

    # MARK: runs

    async def run(self) -> None:
        """Runs workers until nothing is due; workers that are killed are replaced."""
        end = time.monotonic() + LIMIT
        trial = self.trials[0]
        self.wake_servers()
        await asyncio.gather(*(self.work_on(end, number) for number in range(trial.workers)))
        self.look()

    def servers(self) -> list[Path]:
        """The files of servers that rest."""
        return [file for file in self.spool.glob("servers/*") if b"\nrests: " in file.read_bytes()]

    def wake_servers(self) -> None:
        """Ends all rests, as a person does by a touch."""
        for file in self.servers():
            file.touch()

    def rests(self, dropped: Dropped) -> bool:
        """Whether a server of the job rests: on a busy machine, a short timeout may end a connect."""
        hosts = {dropped.play.url(url).split("/")[2].encode() for url in dropped.job.urls}
        return any(host in file.read_bytes() for file in self.servers() for host in hosts)

    async def work_on(self, end: float, number: int) -> None:
        while True:
            # No worker starts during a power cut.
            while self.is_cut:
                await asyncio.sleep(0.001)
            command = ["--once", "-v", "--log-format", "json", "--progress", "never", "-j", "24", "--per-host", "24"]
            command += ["--chunk-size", str(self.trials[0].chunk_size), "--cacert", str(self.server.authority), str(self.spool)]
            before = [str(self.program)]
            if self.boot is not None:
                before = ["unshare", "--mount", "--propagation", "private", "sh", "-c", OTHER_BOOT, "sh", str(self.boot), *before]
            log = self.work / f"log{number}"
            self.alive += 1
            with open(log, "ab") as errors:
                worker = await asyncio.create_subprocess_exec(*before, *command, stderr=errors)
            self.workers.append(worker)
            if self.is_cut:
                self.kill(worker)
            try:
                async with asyncio.timeout(max(1, end - time.monotonic())):
                    await worker.wait()
            except TimeoutError:
                for name in os.listdir(self.spool / "cur"):
                    if dropped := self.named(name):
                        self.found(dropped, "hung", f"still running after {LIMIT} s")
                self.kill(worker)
                await worker.wait()
                return
            finally:
                self.workers.remove(worker)
                self.alive -= 1
                if self.is_cut and self.alive == 0:
                    self.lose()
                    self.is_cut = False
            if worker.returncode == -signal.SIGKILL:
                self.tally.events["kills"] += 1
                for play in {id(dropped.play): dropped.play for dropped in self.jobs}.values():
                    play.sent.append(Sent.event(play.run, "the worker is killed"))
                continue
            # The signal kills a worker that does not handle it yet.
            if worker.pid in self.stopped and worker.returncode in (0, 1, 75, -signal.SIGTERM):
                self.stopped.remove(worker.pid)
                for name in os.listdir(self.spool / "cur"):
                    if worker.returncode >= 0 and f".{worker.pid}." in name and (dropped := self.named(name)):
                        self.found(dropped, "unparked", f"the worker was told to stop, ended with {worker.returncode}, and left {name}")
                continue
            if worker.returncode not in (0, 1, 75):
                said = log.read_text(errors="replace")[-300:]
                self.findings.append(Finding(self.trials[0], "status", f"the worker ended with {worker.returncode}: {said}"))
            return

    @staticmethod
    def kill(worker: asyncio.subprocess.Process) -> None:
        # `Process.kill` would take the exit status away from the loop. A process that has just ended may be collected
        # already.
        if worker.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)

    def act(self, play: Play, kind: str) -> None:
        """Called by the server in the middle of an answer."""
        if self.is_over or play.is_honest:
            return
        self.tally.events[kind] += 1
        if kind == "stop":
            for worker in self.workers:
                if worker.returncode is None:
                    self.stopped.add(worker.pid)
                    os.kill(worker.pid, signal.SIGTERM)
            return
        if kind in ("kill", "power cut"):
            self.is_cut = self.is_cut or (kind == "power cut" and self.can_reboot)
            for worker in self.workers if self.is_cut else self.workers[:1]:
                self.kill(worker)
            return
        dropped = next(one for one in self.jobs if one.play is play)
        for name in os.listdir(self.spool / "cur"):
            if self.named(name) is dropped:
                dropped.was_moved = True
                if kind == "hold":
                    move(self.spool / "cur" / name, self.spool / "hold" / dropped.name)
                else:
                    dropped.is_cancelled = remove(self.spool / "cur" / name) or dropped.is_cancelled

    def named(self, name: str) -> Dropped | None:
        """The trial that a file belongs to."""
        plain = re.sub(r"(:.*|~\d+)+$", "", name)
        return next((dropped for dropped in self.jobs if dropped.name == plain), None)

    # MARK: jobs

    def text(self, dropped: Dropped) -> str:
        job, play = dropped.job, dropped.play
        login = f"user:{SECRET}@" if job.login else ""
        lines = [f"url: {play.url(url, login)}" + (f"{'&' if '?' in url else '?'}sig={SECRET}" if job.login else "") for url in job.urls]
        wanted = play.trial.final(job)
        lines += [f"size: {wanted.size}"] if job.declares_size else []
        lines += [f"crc32: {zlib.crc32(wanted.content):08X}"] if job.declares_crc32 else []
        lines += [f"connections: {job.connections}"] if job.connections > 1 else []
        lines += [f"header: Authorization: Bearer {SECRET}"] if job.header else []
        return "\n".join([*lines, f"output: {dropped.name}", f"timeout: {1 if play.trial.waits else 10}s 30s", "# end"]) + "\n"

    def drop(self, dropped: Dropped) -> None:
        file = self.spool / "tmp" / dropped.name
        file.write_text(self.text(dropped))
        file.rename(self.spool / "new" / dropped.name)

    def steer(self, dropped: Dropped, run: int) -> None:
        """Makes a person's changes after a run. A job that waits becomes due at once, and a job that was given up is
        tried again."""
        number = int(dropped.name.partition(".")[2])
        gestures = [gesture for gesture in dropped.play.trial.gestures if (gesture.run, gesture.job) == (run, number)]
        for gesture in gestures:
            self.gesture(dropped, gesture)
        if not gestures:
            self.settle(dropped)

    def gesture(self, dropped: Dropped, gesture: Gesture) -> None:
        path = self.where(dropped)
        if path is None or dropped.state in ("done", "cur"):
            return
        self.tally.events[gesture.kind] += 1
        dropped.play.sent.append(Sent.event(gesture.run, f"{gesture.kind} {dropped.name} {' '.join(gesture.urls)}"))
        match gesture.kind:
            case "hold":
                move(path, self.spool / "hold" / dropped.name)
            case "edit":
                held = self.spool / "hold" / dropped.name
                move(path, held)
                complete(held)
                dropped.job.urls = list(gesture.urls)
                journal = held.read_text().partition("# end\n")[2]
                held.write_text(self.text(dropped) + journal)
                move(held, self.spool / "new" / dropped.name)
            case "cancel" | "anew":
                remove(path)
                remove(self.spool / "partial" / f"{dropped.name}.part")
                dropped.is_cancelled = gesture.kind == "cancel"
                if gesture.kind == "anew":
                    self.drop(dropped)
            case "retry":
                self.settle(dropped)

    def settle(self, dropped: Dropped) -> None:
        path = self.where(dropped)
        if path is None:
            return
        if dropped.state == "partial":
            now = time.time() - 1
            os.utime(path, (now, now))
        elif dropped.state in ("failed", "hold"):
            complete(path)
            move(path, self.spool / "new" / dropped.name)

    def where(self, dropped: Dropped) -> Path | None:
        for state in STATES:
            for name in os.listdir(self.spool / state):
                if not name.endswith(".part") and self.named(name) is dropped:
                    dropped.state = state
                    return self.spool / state / name
        return None

    def ends(self, dropped: Dropped) -> list[str]:
        """The lines of the job's journal that end an attempt."""
        path = self.where(dropped)
        return [] if path is None else [line for line in path.read_text().splitlines() if line.startswith(("failed:", "interrupted:"))]

    def has_timed_out(self, dropped: Dropped, before: list[str]) -> bool:
        """Whether a timeout has ended the attempt that followed these."""
        ends = self.ends(dropped)
        return dropped.play.trial.waits and len(ends) > len(before) and any(code in ends[-1] for code in TIMEOUTS)

    # MARK: power cuts

    def lose(self) -> None:
        """Loses what was not yet on the disk: data beyond the last checkpoint may remain, be cut off, or be zeros."""
        self.cuts += 1
        before = (self.boot or Path("/proc/sys/kernel/random/boot_id")).read_text().strip()
        self.boot = self.work / f"boot{self.cuts}"
        self.boot.write_text(f"{uuid.UUID(int=random.Random(f'{self.trials[0].seed} {self.cuts}').getrandbits(128))}\n")
        for dropped in self.jobs:
            path = self.where(dropped)
            data = self.spool / "partial" / f"{dropped.name}.part"
            if path is None or dropped.state not in ("cur", "partial") or not data.exists():
                continue
            self.lose_data(path, data, random.Random(f"{dropped.play.trial.seed} {self.cuts}"), dropped, before)

    def lose_data(self, path: Path, data: Path, chance: random.Random, dropped: Dropped, boot: str) -> None:
        """boot: the machine's boot id until now."""
        play = dropped.play
        text = path.read_text()
        lines = text[: text.rfind("\n") + 1].splitlines()
        last = max((number for number, line in enumerate(lines) if line.startswith("started:")), default=0)
        content = data.read_bytes()
        if not content or any(line.startswith("verified:") for line in lines[last:]):
            return
        floor = 0
        # Lines that are certainly on the disk.
        durable = next(number for number, line in enumerate(lines) if line == "# end") + 1
        part = None
        for number, line in enumerate(lines):
            if found := re.match(r"response: .*\bat=(\d+) part=(\d+)", line):
                part = int(found[2])
                # The data was cut to that offset. If there was a checkpoint, the line that says so is on the disk
                # before any new byte.
                if int(found[1]) < floor:
                    floor, durable = int(found[1]), number + 1
            elif found := re.match(r"checkpoint: (\d+)", line):
                floor, durable = int(found[1]), number + 1
            elif line.startswith("failed:") and "code=mismatch" in line:
                floor, part = 0, None
        floor = min(floor, len(content))
        # The worker writes a checkpoint every five seconds, which is longer than a trial. So one is made here at
        # random.
        has_recovered = f" boot={boot} " in lines[last]
        may_mark = has_recovered and dropped.state == "cur" and lines[-1].startswith(("response:", "checkpoint:")) and part == data.stat().st_ino
        if may_mark and chance.random() < 0.7:
            floor = chance.randint(floor, len(content))
            if floor > 0:
                with open(path, "a") as file:
                    file.write(f"checkpoint: {floor} crc32={zlib.crc32(content[:floor]):08X}\n")
                durable = len(lines) + 1
                self.tally.events["checkpoints"] += 1
                play.sent.append(Sent.event(play.run, f"checkpoint at {floor}"))
        kept = chance.randint(floor, len(content))
        play.sent.append(Sent.event(play.run, f"power cut: of {len(content)} bytes {kept} are sure"))
        tail = chance.choice([b"", bytes(len(content) - kept), chance.randbytes(len(content) - kept), content[kept:]])
        with open(data, "r+b") as file:
            file.seek(kept)
            file.write(tail)
            file.truncate()
        if dropped.state == "cur":
            self.lose_lines(path, durable, chance)

    @staticmethod
    def lose_lines(path: Path, durable: int, chance: random.Random) -> None:
        """The lines of a journal from this number on."""
        content = path.read_bytes()
        sure = len(b"".join(content.splitlines(keepends=True)[:durable]))
        kept = chance.randint(sure, len(content))
        path_time = path.stat().st_mtime
        with open(path, "r+b") as file:
            file.truncate(kept)
            if chance.random() < 0.3:
                file.seek(kept)
                file.write(bytes(len(content) - kept))
        os.utime(path, (path_time, path_time))

    # MARK: what must hold

    def look(self) -> None:
        """Checks after a run that has ended."""
        places: dict[str, list[str]] = {}
        for state in STATES:
            for name in os.listdir(self.spool / state):
                if name.endswith((".part", ".record")):
                    continue
                dropped = self.named(name)
                if dropped is None:
                    self.findings.append(Finding(self.trials[0], "strange", f"{state}/{name}"))
                    continue
                places.setdefault(dropped.name, []).append(state)
                dropped.state, dropped.path = state, self.spool / state / name
        outputs = set(os.listdir(self.spool / "files"))
        for dropped in self.jobs:
            states = places.get(dropped.name, [])
            if not states and not dropped.is_cancelled:
                self.found(dropped, "lost", "in no directory")
            elif len(states) > 1:
                self.found(dropped, "two places", f"in {states}")
            elif states and dropped.is_cancelled:
                self.found(dropped, "cancelled", f"and yet in {states[0]}")
            elif states and (states[0] == "cur" or states[0] == "new" and not self.rests(dropped)):
                self.found(dropped, "left", f"in {states[0]} after a run")
            if dropped.name in outputs and states != ["done"] and not dropped.was_moved:
                self.found(dropped, "early", f"its payload is there, and it is in {states}")
        for name in outputs - {dropped.name for dropped in self.jobs}:
            self.findings.append(Finding(self.trials[0], "strange", f"files/{name}"))

    def judge(self) -> None:
        for dropped in self.jobs:
            if dropped.is_cancelled:
                self.tally.classes["cancelled"] += 1
                continue
            path = self.where(dropped)
            if path is None:
                continue
            if dropped.state != "done":
                # How each of these runs ended.
                ends = self.ends(dropped)[-HONEST_RUNS:]
                said = [line for log in self.work.glob("log*") for line in log.read_text(errors="replace").splitlines() if f'"{dropped.name}' in line]
                held = [f"open in {holder}" for holder in holders(path)]
                self.found(dropped, "stuck", "\n".join([f"in {dropped.state} after {HONEST_RUNS} runs with an honest server:", *ends, *said[-6:], *held]))
                continue
            self.judge_payload(dropped, path)
        self.judge_words()

    def judge_payload(self, dropped: Dropped, path: Path) -> None:
        text = path.read_text()
        journal = text.partition("# end\n")[2]
        if SECRET in journal:
            self.found(dropped, "secret", next(line for line in journal.splitlines() if SECRET in line))
        try:
            payload = (self.spool / "files" / dropped.name).read_bytes()
        except FileNotFoundError:
            self.found(dropped, "no payload", "done, and no payload")
            return
        try:
            self.tally.classes[oracle.explain(dropped.play.trial, dropped.job, payload, journal, dropped.play.sent)] += 1
        except Wrong as wrong:
            self.found(dropped, wrong.kind, f"{wrong}")

    def judge_words(self) -> None:
        for log in self.work.glob("log*"):
            for line in log.read_text(errors="replace").splitlines():
                if line.startswith("{"):
                    job = self.named(json.loads(line).get("job", "")) if SECRET in line else None
                    if SECRET in line:
                        trial = job.play.trial if job else self.trials[0]
                        self.findings.append(Finding(trial, "secret", f"the log has {line}"))
                elif line:
                    self.findings.append(Finding(self.trials[0], "printed", line))

    def log_of(self, trial: Trial) -> list[Sent]:
        return next(one.play.sent for one in self.jobs if one.play.trial is trial)

    def remove(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)


def move(source: Path, target: Path) -> bool:
    try:
        source.rename(target)
    except FileNotFoundError:
        return False
    return True


def complete(path: Path) -> None:
    """Does what a person does before a job goes to new/: there, the program waits ten seconds for the rest of a line, unless the job shows by its journal that
    it was once complete. A power cut can leave a part of the first journal line."""
    text = path.read_bytes()
    if not text.endswith(b"\n") and text[: text.rfind(b"\n") + 1].endswith(b"# end\n"):
        os.truncate(path, text.rfind(b"\n") + 1)


def remove(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
