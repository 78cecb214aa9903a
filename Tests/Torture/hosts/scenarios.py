"""What is played on each file system."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cpu import machine_time
from network import Host
from stage import Stage
from worker import Worker


@dataclass
class Outcome:
    """A row of the table."""

    scenario: str
    columns: dict[str, str]
    problems: list[str] = field(default_factory=list)


def speed(stage: Stage, hosts: int, jobs: int, workers_each: int = 1) -> Outcome:
    stage.new_spool()
    stage.drop(stage.hosts[0], jobs, is_slow=False)
    cpu, busy, begun = stage.system.server_cpu(), machine_time(), time.monotonic()
    workers = [stage.work_on(host, "--jobs", "8") for host in stage.hosts[:hosts] for _ in range(workers_each)]
    stage.wait("all jobs done", lambda: len(stage.done()) == jobs)
    seconds = time.monotonic() - begun
    cpu, busy = stage.system.server_cpu() - cpu, machine_time() - busy
    lost = stage.lost_claims()
    wrong = stage.stop_workers()
    shares = [len(worker.jobs("done")) for worker in workers]
    columns = {
        "jobs/s": f"{jobs / seconds:.0f}",
        "by host": " + ".join(map(str, shares)),
        "GETs a job": f"{stage.gets():.3f}",
        "claims lost": lost,
        "CPU of the file servers": f"{cpu / seconds:.0%}" if cpu else "none",
        "of the machine": f"{busy / seconds:.0%} of {os.cpu_count()}00%",
    }
    where = f"{hosts} host{'s' if hosts > 1 else ''}" + (f" with {workers_each} workers" if workers_each > 1 else "")
    return Outcome(f"{jobs} jobs, {where}", columns, wrong + stage.problems())


def speed_of_new_servers(stage: Stage, hosts: int, jobs: int) -> Outcome:
    """After as many jobs that are not measured, because the first ones on new servers take up to three times as long."""
    cold = speed(stage, 1, jobs)
    outcome = speed(stage, hosts, jobs)
    outcome.problems[:0] = cold.problems
    return outcome


def far_away(stage: Stage, hosts: int, workers_each: int, jobs: int, way: float) -> Outcome:
    """With a round trip of `way` milliseconds to the server that knows the names. Then a host waits most of the time, as
    those do that have cores of their own."""
    stage.system.way = way
    try:
        stage.system.mount_anew(stage.hosts[:hosts])
        outcome = speed(stage, hosts, jobs, workers_each)
    finally:
        stage.system.way = 0
        stage.system.mount_anew(stage.hosts[:hosts])
    outcome.scenario += f", {way:g} ms away"
    return outcome


# MARK: a drop

def drops(stage: Stage) -> Outcome:
    """After how many seconds a job starts that another host has dropped."""
    stage.new_spool()
    here, there = stage.hosts[0], stage.hosts[1]
    worker = stage.work_on(there, "--jobs", "4")
    stage.wait("the worker looks around", lambda: any(event.what == "file-system" for event in worker.look()), 60)
    columns = {}

    def time_of(drop: Callable[[], str]) -> float:
        name = drop()
        begun = time.monotonic()
        stage.wait(f"{name} starts", lambda: worker.first(name) is not None, 120)
        # Less than 0 if it started while it was being written.
        seconds = (worker.first(name) or 0) - begun
        stage.wait(f"{name} is done", lambda: name in stage.done())
        return seconds

    def added() -> str:
        return stage.drop(here, 1, is_slow=False)[0]

    time.sleep(2)
    columns["soon after another"] = f"{max(time_of(added) for _ in range(3)):.1f}"
    # Long enough for the worker to look as rarely as it ever does, and at several moments between two of its looks.
    columns["at rest"] = f"{max(time_of(added) for pause in (22, 25, 28) if not time.sleep(pause)):.1f}"
    columns["by cp"] = f"{time_of(lambda: written(stage, here)):.1f}"
    columns["half-written"] = f"{time_of(lambda: written(stage, here, pause=6)):.1f}"
    wrong = stage.stop_workers()
    if float(columns["half-written"]) < 0:
        wrong.append("a job that was still being written has started")
    return Outcome("drop", columns, wrong + stage.problems())


def written(stage: Stage, host: Host, pause: int = 0) -> str:
    """A plain drop into new. With a pause, in two pieces, the first of which is a job; returns at its end."""
    name = f"job{len(stage.origin.content):05}"
    url = stage.origin.add(name, is_slow=False)
    rest = f"sleep {pause}; printf 'attempts: 3\\n'"
    host.run("sh", "-c", f"{{ printf 'url: {url}\\noutput: {name}\\n'; {rest}; }} >'{stage.at(host)}/new/{name}'")
    stage.dropped.add(name)
    return name


# MARK: faults

@dataclass
class Fault:
    name: str
    strike: Callable[[Stage, Worker], None]
    heal: Callable[[Stage, Worker], None]


def nothing(_: Stage, __: Worker) -> None:
    pass


FAULTS = [
    Fault("worker killed", lambda _, worker: worker.signal(signal.SIGKILL), nothing),
    Fault("worker stopped (SIGSTOP)", lambda _, worker: worker.signal(signal.SIGSTOP), lambda _, worker: worker.signal(signal.SIGCONT)),
    Fault("host cut off", lambda _, worker: worker.host.pull(), lambda _, worker: worker.host.plug()),
    Fault(
        "mount lost",
        lambda stage, worker: stage.system.lose_mount(worker.host),
        lambda stage, worker: stage.system.mount(worker.host),
    ),
]
CUT = next(fault for fault in FAULTS if fault.name == "host cut off")
JOBS = 30
CROWD = 10_000
# Seconds for which the others may stand still after a host was cut off.
PAUSE = 5
# Seconds between two starts of a worker that ends.
RESTART = 5


def struck(stage: Stage, fault: Fault) -> Outcome:
    """A fault hits one of three hosts in the middle of its transfers. The others have to do all jobs. When it is over,
    that host has to work again."""
    stage.new_spool()
    stage.drop(stage.hosts[0], JOBS, is_slow=True)
    victim, *others = [stage.work_on(host, "--jobs", "4") for host in reversed(stage.hosts)]
    stage.wait("the victim has jobs in hand", lambda: len(victim.in_hand()) >= 3)
    time.sleep(3)
    in_hand = victim.in_hand()
    fault.strike(stage, victim)
    return survived(stage, fault, victim, others, in_hand)


def crowd(stage: Stage) -> Outcome:
    """One of three hosts is cut off when a third of many small jobs is done."""
    stage.new_spool()
    stage.drop(stage.hosts[0], CROWD, is_slow=False)
    # As many claims in hand as stop a mount that serves 10 requests at once, if somebody reads all of them.
    victim, *others = [stage.work_on(host, "--jobs", "16", "--per-host", "16") for host in reversed(stage.hosts)]
    stage.wait("a third of the jobs done", lambda: len(stage.done()) >= CROWD // 3)
    begun = time.time()
    CUT.strike(stage, victim)
    # What it still says is in its log by then.
    time.sleep(1)
    in_hand = victim.in_hand()
    outcome = survived(stage, CUT, victim, others, in_hand, of=f"{CROWD} jobs, ")
    pause = stage.origin.longest_pause(begun, stage.dropped - in_hand)
    outcome.columns["longest pause of the others"] = f"{pause:.0f} s"
    if pause > PAUSE:
        outcome.problems.append(f"the others stood still for {pause:.0f} s")
    return outcome


def survived(stage: Stage, fault: Fault, victim: Worker, others: list[Worker], in_hand: set[str], of: str = "") -> Outcome:
    """What comes of the jobs after the fault has struck."""
    begun = time.monotonic()

    def taken_after(job: str) -> float | None:
        found = [at - begun for worker in others if (at := worker.first(job, begun)) is not None]
        return min(found, default=None)

    def is_over() -> bool:
        # What had written a receipt when it was struck may not have said so any more.
        left = stage.dropped - stage.done()
        return not left - in_hand and all((stage.view / stage.spool / "done" / job).exists() for job in left)

    # What it had written already may have been enough, so it may have ended some of them.
    stage.wait("all jobs done by the others", is_over, stage.lease + 150 + len(stage.dropped) / 20)
    taken = [after for job in in_hand if (after := taken_after(job)) is not None]
    columns = {
        "in hand": str(len(in_hand)),
        "taken up after": f"{max(taken):.0f} s" if taken else "never",
        f"within {stage.lease + 5} s": f"{sum(after <= stage.lease + 5 for after in taken)} of {len(taken)}",
        "GETs a job": f"{stage.gets():.2f}",
    }
    fault.heal(stage, victim)
    columns["the worker then"], wrong = woken(stage, victim, in_hand, others)
    wrong += [problem for problem in stage.stop_workers() if not problem.startswith(f"{victim.host.name}'s")]
    return Outcome(f"{of}{fault.name}", columns, wrong + stage.problems())


def woken(stage: Stage, victim: Worker, in_hand: set[str], others: list[Worker]) -> tuple[str, list[str]]:
    """What the worker does when its host is well again, in words; and what is wrong with that."""
    try:
        stage.wait("it notices", lambda: victim.status() is not None or not (in_hand & victim.in_hand()), 100)
    except TimeoutError:
        pass
    for worker in others:
        worker.end()
    said = sorted({event.what for event in victim.look() if event.job in in_hand} & {"taken-over", "held", "cancelled", "failed", "broken"})
    words = ", ".join(said)
    if (status := victim.status()) is not None:
        words += f"{', ' if words else ''}ended with {status}"
    begun = time.monotonic()
    more = stage.drop(stage.rig, 4, is_slow=False)

    def works() -> bool:
        nonlocal victim
        if victim.status() is not None:
            # As systemd(1) does with Restart=on-failure.
            victim = stage.work_on(victim.host, "--jobs", "4")
            time.sleep(RESTART)
        return set(more) <= stage.done()

    try:
        stage.wait("the host works again", works, 120)
    except TimeoutError:
        return f"{words}; does not work again", ["the host does not work again within 120 s"]
    return f"{words or 'silent'}; works again", [] if time.monotonic() - begun < 60 else ["it took more than 60 s to work again"]


# MARK: clocks, peers

def clocks(stage: Stage, minutes: int) -> Outcome:
    """The clock of one host is wrong, for its mount as well."""
    host = stage.hosts[-1]
    host.clock = minutes
    stage.system.mount_anew([host])
    try:
        stage.new_spool()
        stage.drop(host, JOBS, is_slow=True)
        workers = [stage.work_on(each, "--jobs", "4") for each in stage.hosts]
        seconds = stage.wait("all jobs done", lambda: stage.dropped <= stage.done(), 200)
        wrong = stage.stop_workers()
    finally:
        host.clock = 0
    taken = sum(len(worker.jobs("taken-over")) for worker in workers)
    if taken:
        wrong.append(f"{taken} jobs were taken from a living worker")
    columns = {"by host": " + ".join(str(len(worker.jobs("done"))) for worker in workers), "GETs a job": f"{stage.gets():.2f}", "seconds": f"{seconds:.0f}"}
    outcome = Outcome(f"clock {minutes:+} min", columns, wrong + stage.problems())
    stage.system.mount_anew([host])
    return outcome


def one_name(stage: Stage) -> Outcome:
    """Two hosts have one name, and their workers one process id, as two pods of two clusters may have."""
    stage.new_spool()
    stage.drop(stage.rig, JOBS, is_slow=True)
    first_process = ["unshare", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", 'hostname worker-0 && exec "$@"', "sh"]
    workers = [stage.work_on(host, "--jobs", "4", behind=first_process) for host in stage.hosts[:2]]
    seconds = stage.wait("all jobs done", lambda: stage.dropped <= stage.done(), 200)
    wrong = stage.stop_workers()
    if taken := sum(event.what == "taken-over" for worker in workers for event in worker.look()):
        wrong.append(f"{taken} jobs were taken from a living worker")
    columns = {"by host": " + ".join(str(len(worker.jobs("done"))) for worker in workers), "GETs a job": f"{stage.gets():.2f}", "seconds": f"{seconds:.0f}"}
    return Outcome("one host name, one process id", columns, wrong + stage.problems())


def doctor(stage: Stage) -> Outcome:
    """`spoolrun doctor --peer` with two mounts of one host, and with two clients."""
    stage.new_spool()
    host = stage.hosts[0]
    other = stage.system.mount(host, "peer")
    words = [stage.program, "doctor", "--spool", stage.at(host), "--peer", other / stage.spool]
    done = subprocess.run(host.command(*words), capture_output=True, text=True, check=False, timeout=150)
    stage.system.unmount(host, "peer")
    lines = [line.strip() for line in done.stdout.splitlines()]
    wrong = [] if done.returncode == 0 else [f"status {done.returncode}: {done.stderr}"]
    return Outcome("doctor", {"says": "\n".join(line for line in lines if "/" not in line.split(":")[0])}, wrong)
