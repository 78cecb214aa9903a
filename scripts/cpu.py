"""CPU time, for the benchmark and the torture, which link to this file."""

import os
from pathlib import Path


def machine_time() -> float:
    """Seconds that all CPUs have been busy since the machine's start (proc(5), stat)."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split(None, 8)[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
