"""The machine and the versions that were measured."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from scratch import Scratch

# How each tool prints its version.
TOOLS = ["spoolrun", "curl", "wget", "wget2", "aria2c", "axel", "rhash", "nginx"]


def field(file: str, name: str) -> str:
    found = re.search(rf"^{name}\s*:\s*(.*)$", Path(file).read_text(), re.MULTILINE)
    return found[1] if found else "unknown"


def version(program: str) -> str:
    """The version that `program` prints: its first number with a dot."""
    path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")
    if path is None:
        return "not installed"
    said = subprocess.run([path, "-v" if program == "nginx" else "--version"], capture_output=True, text=True)
    found = re.search(r"\d+(\.\d+)+", said.stdout + said.stderr)
    return found[0] if found else "unknown"


def describe(program: Path, scratch: Scratch) -> list[str]:
    """The lines of a list."""
    memory = int(field("/proc/meminfo", "MemTotal").split()[0]) / (1 << 20)
    release = platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    busy = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    versions = [f"{tool} {version(str(program) if tool == 'spoolrun' else tool)}" for tool in TOOLS]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True)
    versions[0] += f" ({commit.stdout.strip() or 'unknown commit'})"
    return [
        f"Machine: {field('/proc/cpuinfo', 'model name')}, {os.cpu_count()} CPUs, {memory:.0f} GiB of memory",
        f"System: {release}, Linux {platform.release()}; load average at the start {busy}",
        f"Disk: {scratch.disk}",
        f"Versions: {', '.join(versions)}",
    ]
