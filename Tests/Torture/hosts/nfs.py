"""NFS version 4.2, with the kernel's own server and clients. The kernel may be that of a User-Mode Linux (machine.py)."""

import subprocess
from pathlib import Path

from filesystems import SharedFileSystem
from network import SERVER, Host, cpu_seconds


class NFS(SharedFileSystem):
    name = "NFSv4.2"
    programs = ("exportfs", "rpc.nfsd", "mount.nfs4")
    options = "vers=4.2"
    # No program serves a mount.
    without = ("mount lost",)

    def start(self) -> None:
        shared = self.work / "shared"
        shared.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "none", shared], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", "/var/lib/nfs"], check=True)
        for place in ("rpc_pipefs", "v4recovery"):
            Path("/var/lib/nfs", place).mkdir()
        for table in ("etab", "rmtab"):
            Path("/var/lib/nfs", table).touch()
        if not Path("/proc/fs/nfsd/threads").exists():
            subprocess.run(["mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd"], check=True)
        # After its start, a server waits for clients of its last run.
        Path("/proc/fs/nfsd/nfsv4gracetime").write_text("10")
        # So long does it keep what a lost client has open or delegated, and others wait (spoolrun(1), SEVERAL HOSTS).
        Path("/proc/fs/nfsd/nfsv4leasetime").write_text("15")
        subprocess.run(["exportfs", "-i", "-o", "rw,no_root_squash,fsid=0,sync,no_subtree_check", f"*:{shared}"], check=True)
        subprocess.run(["rpc.mountd", "--no-nfs-version", "3"], check=True)
        subprocess.run(["rpc.nfsd", "--no-nfs-version", "3", "--nfs-version", "4.2", "4"], check=True)

    def mount(self, host: Host, place: str = "mnt") -> Path:
        point = host.work / place
        point.mkdir(exist_ok=True)
        host.run("mount", "-t", "nfs4", "-o", self.options, f"{SERVER}:/", point)
        return point

    def stop(self) -> None:
        """Removes what would be in the way when its directory is removed."""
        subprocess.run(["umount", "--lazy", self.work / "shared"], check=False)

    def server_cpu(self) -> float:
        return cpu_seconds([int(file.parent.name) for file in Path("/proc").glob("[0-9]*/comm") if file.read_text() == "nfsd\n"])
