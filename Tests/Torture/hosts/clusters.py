"""The file systems that have servers of their own."""

import shutil
import subprocess
import time
from pathlib import Path

from filesystems import PATIENCE, SharedFileSystem, family
from network import SERVER, Host, Rig, cpu_seconds


MASTER_PORT = "9421"
RELAY = Path(__file__).resolve().parents[3] / "Benchmarks" / "relay.c"


class MooseFS(SharedFileSystem):
    name = "MooseFS"
    programs = ("mfsmaster", "mfschunkserver", "mfsmount")
    options = ""
    # Milliseconds of a round trip between a host and the master, which knows the names.
    way = 0.0
    # Where the next mount finds the master.
    master = (SERVER, MASTER_PORT)

    def start(self) -> None:
        for part in ("master", "chunks", "disk"):
            (self.work / part).mkdir()
        shutil.copy("/var/lib/mfs/metadata.mfs.empty", self.work / "master" / "metadata.mfs")
        (self.work / "exports").write_text("* / rw,alldirs,admin,maproot=0:0\n")
        (self.work / "disks").write_text(f"{self.work}/disk\n")
        common = "WORKING_USER = root\nWORKING_GROUP = root\nNICE_LEVEL = 0\n"
        # A client that was cut off keeps its locks for this time, by default a day.
        listen = "".join(f"{part}_LISTEN_HOST = {SERVER}\n" for part in ("MATOML", "MATOCS", "MATOCL"))
        (self.work / "master.cfg").write_text(
            f"{common}{listen}DATA_PATH = {self.work}/master\nEXPORTS_FILENAME = {self.work}/exports\nSESSION_SUSTAIN_TIME = 60\n"
        )
        (self.work / "chunks.cfg").write_text(
            f"{common}DATA_PATH = {self.work}/chunks\nHDD_CONF_FILENAME = {self.work}/disks\nHDD_LEAVE_SPACE_DEFAULT = 16MiB\n"
            f"MASTER_HOST = {SERVER}\nBIND_HOST = {SERVER}\nCSSERV_LISTEN_HOST = {SERVER}\nMASTER_RECONNECTION_DELAY = 1\n"
        )
        self.serve("master", "mfsmaster", "-f", "-c", self.work / "master.cfg", "start")
        self.wait("master", "initialized properly")
        self.serve("chunks", "mfschunkserver", "-f", "-c", self.work / "chunks.cfg", "start")
        self.wait("chunks", "connected to Master")
        self.wait("chunks", ": complete (")

    def mount(self, host: Host, place: str = "mnt") -> Path:
        self.master = (SERVER, MASTER_PORT)
        if self.way and not isinstance(host, Rig):
            self.master = ("127.0.0.1", self.relay(host))
        point = super().mount(host, place)
        if isinstance(host, Rig):
            # By default two copies, which one chunk server cannot have.
            subprocess.run(["mfssetgoal", "-r", "1", point], check=True, stdout=subprocess.DEVNULL)
        return point

    def relay(self, host: Host) -> str:
        """Starts one on the host, which ends with it; returns its port."""
        program = self.work / "relay"
        if not program.exists():
            subprocess.run(["cc", "-O2", "-pthread", "-o", program, RELAY], check=True)
        command = host.command(program, SERVER, MASTER_PORT, str(self.way), "0", "0")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        return process.stdout.readline().strip()

    def wait(self, server: str, line: str) -> None:
        until = time.monotonic() + PATIENCE
        while line not in (said := (self.work / f"{server}.log").read_text(errors="replace")):
            if time.monotonic() > until:
                raise SystemExit(f"{self.name}: {server}: {said}")
            time.sleep(0.05)

    def client(self, point: Path) -> list[str | Path]:
        address, port = self.master
        return ["mfsmount", "-f", "-H", address, "-P", port, point, "-o", "mfsnice=0"]


class GlusterFS(SharedFileSystem):
    name = "GlusterFS"
    # By default a server keeps the locks of a host that vanishes for 42 seconds, and others wait for them.
    options = "server.tcp-user-timeout=10 server.keepalive-time=5 server.keepalive-count=3"
    programs = ("glusterd", "gluster", "glusterfs")

    def start(self) -> None:
        brick = self.work / "brick"
        brick.mkdir()
        # Its own directories are private to the rig.
        for place in ("/var/lib/glusterd", "/var/log/glusterfs"):
            Path(place).mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
        Path("/run/gluster").mkdir(exist_ok=True)
        self.serve("glusterd", "glusterd", "--no-daemon", "--volfile", "/etc/glusterfs/glusterd.vol")
        until = time.monotonic() + PATIENCE
        create = ["volume", "create", "spool", f"{SERVER}:{brick}", "force"]
        while (tried := self.gluster(*create)).returncode != 0:
            if time.monotonic() > until:
                raise SystemExit(f"{self.name}: {tried.stdout}{tried.stderr}")
            time.sleep(0.5)
        for name, value in (setting.split("=") for setting in self.options.split()):
            self.gluster("volume", "set", "spool", name, value).check_returncode()
        self.gluster("volume", "start", "spool").check_returncode()

    def gluster(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["gluster", "--mode=script", *words], capture_output=True, text=True, check=False, timeout=PATIENCE)

    def client(self, point: Path) -> list[str | Path]:
        return ["glusterfs", "--no-daemon", f"--volfile-server={SERVER}", "--volfile-id=spool", point]

    def server_cpu(self) -> float:
        bricks = [int(file.read_text()) for file in Path("/run/gluster/vols").glob("*/*.pid")]
        return cpu_seconds([*bricks, *(pid for server in self.servers for pid in family(server.pid))])
