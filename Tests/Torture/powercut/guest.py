"""The machine to be killed: the init of a User-Mode Linux. uml.py starts it, and kills it while its worker runs.

Its root is the host's, read-only. It tells the host what it has promised: the host has each line before the machine
continues.
"""

import json
import pickle
import random
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from cuts import moments, new_spool, stops
from disks import run
from jobs import Dropper, Jobs, Promises
from server import Server
from worker import Worker

# uml.py has the other end of each.
TOLD = Path("/dev/tty0")
LOG = Path("/dev/tty1")
# How often it is checked whether there is something to tell (s).
INTERVAL = 0.1


@dataclass
class Plan:
    """What the host wants from it."""

    program: Path
    # The server's files on the host, and its port there.
    files: Path
    port: int
    # Without the contents of payloads, which the host compares.
    jobs: Jobs
    # For the worker, and for the dropper.
    environment: dict[str, str]
    # mount(8)
    type: str
    options: str
    # The machine is killed while nothing runs, not at random.
    stops: bool
    seed: int
    # Otherwise the claims of this machine would be another machine's, and their lease would have to expire (spool.5).
    host: str


def tell(event: str, job: str = "") -> None:
    with open(TOLD, "w") as told:
        told.write(json.dumps({"event": event, "job": job}) + "\n")


class Told(Promises):
    """Promises that outlive the machine."""

    def begin(self, job: str) -> None:
        tell("begun", job)

    def drop(self, job: str) -> None:
        tell("dropped", job)


def power_on(plan: Plan) -> None:
    random.seed(plan.seed)
    run("mount", "-t", "proc", "proc", "/proc")
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    run("ip", "link", "set", "lo", "up")
    socket.sethostname(plan.host)
    point, state = Path("/run/disk"), Path("/run/server")
    point.mkdir()
    state.mkdir()
    run("mount", "-t", plan.type, "-o", plan.options, "/dev/ubda", point)
    with Server(plan.files, state, plan.port):
        spool = new_spool(plan.program, plan.jobs, point)
        dropper = Dropper(plan.program, spool, plan.jobs, Told(), plan.environment)
        tell("ready")
        work(plan, dropper)
        # What is not on the disk yet must not get there; wait for the end of the machine.
        time.sleep(3600)


def work(plan: Plan, dropper: Dropper) -> None:
    def start() -> Worker:
        return Worker(plan.program, dropper.spool, LOG, preload=plan.environment)

    if plan.stops:
        for _ in stops(dropper, start):
            tell("idle")
        return
    for _ in moments(dropper, start, INTERVAL):
        pass


if __name__ == "__main__":
    # `guest.Plan`, not the one of `__main__`.
    power_on(pickle.loads(Path(sys.argv[1]).read_bytes()))
