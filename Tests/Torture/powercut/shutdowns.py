"""Shuts the file system down under the worker (FS_IOC_SHUTDOWN): at once nothing reaches the disk any more, not even
the file system's own journal, and every call fails. Unlike a copy of the disk, this also shows how the worker ends."""

import random
import time
from pathlib import Path

import checks
from checks import Spool
from cuts import LIMIT, Outcome, Rig, new_spool
from disks import Kind, fsync_file, shut_down
from jobs import Dropper, Promises
from server import AFTER

# The exit status of a run whose spool failed (spoolrun.1). No run can be finished before: the large job takes twice as
# long as the longest wait for the shutdown.
STATUS = 74
UNFIT = 78


def shut_down_once(rig: Rig, kind: Kind, outcome: Outcome) -> None:
    image = rig.store.make(kind)
    promises = Promises()
    with rig.store.mounted(image, kind) as point:
        spool = new_spool(rig.program, rig.jobs, point)
        dropper = Dropper(rig.program, spool, rig.jobs, promises)
        for job in rig.jobs.small[:20]:
            dropper.drop(job)
        dropper.drop(rig.jobs.all["large-0"])
        worker = rig.start(spool, image)
        # Most of the small jobs are done after a tenth of a second.
        time.sleep(random.choice([random.uniform(0, 0.2), random.uniform(0, 6)]))
        promises.add_log(worker.events())
        shut_down(point)
        status = worker.wait(LIMIT)
    problems = [*dropper.errors]
    # It may still have been trying out the file system, and refuse one that does nothing right.
    is_unfit = status == UNFIT and all(event["event"] == "printed" for event in worker.events())
    if status != STATUS and not is_unfit:
        problems.append(f"the run ended with {status} when its disk went away")
    with rig.store.mounted(image, kind) as point:
        problems += examine(rig, point / "spool", image, promises)
    outcome.add(image.name, problems)
    image.unlink()


def examine(rig: Rig, root: Path, image: Path, promises: Promises) -> list[str]:
    before = Spool(root)
    problems = list(checks.after_cut(before, rig.jobs, promises))
    fsync_file(root / "defaults", AFTER)
    rig.log(image).unlink()
    worker = rig.start(root, image, reboot=True)
    status = worker.wait(LIMIT)
    if status not in (0, 1):
        problems.append(f"the next run ended with {status}")
    problems += checks.resumed_at_checkpoint(before, worker.events())
    return problems + list(checks.at_end(Spool(root), rig.jobs, promises))


def shutdowns(rig: Rig, kind: Kind, wanted: int) -> Outcome:
    outcome = Outcome()
    while outcome.cuts < wanted:
        shut_down_once(rig, kind, outcome)
    return outcome
