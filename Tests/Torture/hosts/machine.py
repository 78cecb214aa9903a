"""Runs the rig in a User-Mode Linux, a kernel that is a process: it has NFS, which the host's kernel may lack."""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

MACHINE = "linux.uml"
MODULES = ("fuse", "nfsd", "nfsv4", "veth", "bridge")
# Its root is the host's, read-only. What it may write to are its own directories, and two of the host: one for its exit
# status, and that of the table.
INIT = """#!/bin/bash
exec </dev/null >/dev/tty0 2>&1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t hostfs none /mnt -o {exchange}
mount -t tmpfs tmpfs /run
mkdir -p /run/kernel/lib
ln -s /usr/lib/uml/modules /run/kernel/lib/modules
for module in {modules}; do modprobe -d /run/kernel "$module"; done
mount -t tmpfs tmpfs /media
mkdir -p /dev/shm
{table}
cd {place} && {command}
echo $? >/mnt/status
echo o >/proc/sysrq-trigger
sleep 60
"""


def obstacle() -> str | None:
    for tool in (MACHINE, "modprobe"):
        if not any(Path(folder, tool).exists() for folder in (*os.environ["PATH"].split(":"), "/usr/sbin", "/sbin")):
            return f"{tool} not installed (Tests/Torture/hosts/setup nfs)"
    return None


def run(words: list[str], inside: str, table: Path | None) -> int:
    """Runs the rig there with these arguments; returns its status. `inside`: set in its environment."""
    with tempfile.TemporaryDirectory(prefix="machine-", dir="/var/tmp") as exchange:
        parent = table.resolve().parent if table else None
        environment = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "HOME": "/root", "TMPDIR": "/media", inside: "1"}
        command = ["env", *(f"{name}={value}" for name, value in environment.items()), sys.executable, "-B", *words]
        init = Path(exchange, "init")
        init.write_text(
            INIT.format(
                exchange=exchange,
                modules=" ".join(MODULES),
                table=f"mount -t hostfs none {shlex.quote(str(parent))} -o {shlex.quote(str(parent))}" if parent else "",
                place=shlex.quote(os.getcwd()),
                command=shlex.join(command),
            )
        )
        kernel = [MACHINE, "mem=1536M", f"uml_dir={exchange}", "rootfstype=hostfs", "rootflags=/", "ro", "quiet", "loglevel=0", "panic=-1"]
        consoles = ["con0=null,fd:1", "con=null", "init=/bin/bash", f"PATH={environment['PATH']}", "--", str(init)]
        unshare = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child"]
        subprocess.run([*unshare, *kernel, *consoles], stdin=subprocess.DEVNULL, check=False)
        status = Path(exchange, "status")
        return int(status.read_text()) if status.exists() else 70
