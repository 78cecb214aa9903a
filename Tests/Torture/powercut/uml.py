"""Kills a machine during a run: `kill -9` of a User-Mode Linux, a real kernel that is a process, whose disk is an
image.

This shows with another kernel what cuts.py shows with the host's: this kernel does not know when it ends, and its
reboot is real. The disk keeps what it was given; nothing of the machine's page cache remains.
"""

import os
import pickle
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import guest
from cuts import LIMIT, RUN_TIME, STOPS, Cut, Outcome, Rig, demand_silence, examine
from disks import Kind
from jobs import Jobs, Promises
from worker import read_events

MACHINE = "linux.uml"


def without_contents(jobs: Jobs) -> Jobs:
    return Jobs(jobs.url, {name: replace(job, versions=[]) for name, job in jobs.all.items()})


@dataclass
class Machine:
    process: subprocess.Popen[bytes]
    # What it told, and what its worker logged; `Rig.log` is of the run that follows.
    told: Path
    log: Path

    def count(self, event: str) -> int:
        """How often it has told this."""
        return sum(one["event"] == event for one in read_events(self.told))

    def wait(self, event: str, count: int = 1) -> None:
        deadline = time.monotonic() + LIMIT
        while self.count(event) < count:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the machine did not tell that it was {event}: {self.told}")
            time.sleep(0.002)

    def kill(self) -> None:
        """Kills all of its processes at once: they are in a namespace, of which this is the first process."""
        first = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        if len(first) != 1:
            raise RuntimeError(f"the machine has ended by itself: {self.told}")
        os.kill(int(first[0]), signal.SIGKILL)
        self.process.wait()

    def promises(self) -> Promises:
        promises = Promises()
        for event in read_events(self.told):
            if event["event"] == "begun":
                promises.begin(event["job"])
            elif event["event"] == "dropped":
                promises.drop(event["job"])
        promises.add_log(read_events(self.log))
        return promises


def power_on(rig: Rig, kind: Kind, image: Path, stops: bool) -> Machine:
    plan = guest.Plan(
        rig.program,
        rig.work,
        int(rig.jobs.url.rpartition(":")[2]),
        without_contents(rig.jobs),
        rig.preload,
        kind.type,
        kind.options,
        stops,
        random.randrange(1 << 32),
        socket.gethostname(),
    )
    file, told, log = (rig.work / f"{image.name}.{suffix}" for suffix in ["plan", "told", "worker"])
    file.write_bytes(pickle.dumps(plan))
    with open(told, "wb") as first, open(log, "wb") as second:
        command = [
            *["unshare", "--pid", "--fork", "--kill-child", MACHINE, "mem=256M", f"ubda={image}", f"uml_dir={rig.work}/uml"],
            *["rootfstype=hostfs", "rootflags=/", "ro", "quiet", "loglevel=0", "panic=-1"],
            *[f"con0=null,fd:{first.fileno()}", f"con1=null,fd:{second.fileno()}", "con=null", f"init={sys.executable}"],
            f"PATH={os.environ['PATH']}",
            *["--", "-B", Path(guest.__file__), file],
        ]
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=first, stderr=first, pass_fds=[first.fileno(), second.fileno()]
        )
    return Machine(process, told, log)


def kill_once(rig: Rig, kind: Kind, stops: bool) -> Cut:
    image = rig.store.make(kind)
    machine = power_on(rig, kind, image, stops)
    try:
        machine.wait("ready")
        if stops:
            machine.wait("idle", random.randint(1, 2 * STOPS))
        else:
            time.sleep(random.uniform(0, 1.2 * RUN_TIME))
    finally:
        machine.kill()
    demand_silence(machine.log)
    return Cut(image, machine.promises(), f"{image.name} ({'idle' if stops else 'during'})")


def power_cuts(rig: Rig, kind: Kind, wanted: int) -> Outcome:
    """Kills every other machine while nothing runs."""
    outcome = Outcome()
    for number in range(wanted):
        examine(rig, kind, kill_once(rig, kind, stops=number % 2 == 1), outcome, again=False)
    return outcome


def obstacle() -> str | None:
    return None if shutil.which(MACHINE) else f"no {MACHINE}: Tests/Torture/powercut/setup user-mode-linux"
