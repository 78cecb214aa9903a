"""What is done with a machine, and what has to be true after it. Each step begins where the one before it ended."""

import json
import re
import sys
import time
from pathlib import Path

import origin
from machine import Machine, wait

PORT = 8017
SPOOL = "/var/spool/spoolrun"
MIB = 1 << 20
# What the kernel says of a process under the units' hardening.
CONFINED = {"NoNewPrivs": "1", "Seccomp": "2", "CapBnd": "0000000000000000", "Umask": "0077"}
UNITS = ["spoolrun.service", "spoolrun-once.path", "spoolrun-once.timer", "spoolrun-once.service"]


class Steps:
    def __init__(self, machine: Machine, program: str):
        self.machine = machine
        # Root's commands become the owner of the spool; those of 0.1 did not.
        self.as_user: list[str] = []
        # The spoolrun of the package under test, and 0.1's.
        self.package, self.old = "/root/spoolrun.deb", "/root/spoolrun-0.1.deb"
        self.program = program
        self.requests = machine.root.path.with_suffix(".requests")
        machine.beside(sys.executable, "-B", str(Path(origin.__file__)), str(PORT), stdout=self.requests.open("w"))

    # What is there.

    def install(self, package: str) -> str:
        return self.machine.run(
            "apt-get", "install", "--yes", "--no-install-recommends", "--allow-downgrades",
            "-o", "Dpkg::Options::=--force-confold", package)

    def state(self, unit: str) -> str:
        return self.machine.says("systemctl", "is-active", unit)

    def pid(self, unit: str) -> int:
        return int(self.machine.says("systemctl", "show", "--property=MainPID", "--value", unit))

    def listed(self, spool: str, folder: str) -> list[str]:
        return sorted(path.name for path in self.machine.file(f"{spool}/{folder}").iterdir())

    # Jobs.

    def drop(self, name: str, size: int, rate: int = 0, spool: str = SPOOL):
        self.machine.run(
            *self.as_user, "spoolrun", "add", "--spool", spool, "--name", name, "-o", name,
            f"http://127.0.0.1:{PORT}/{name}?size={size}&rate={rate}")

    def check_done(self, name: str, size: int, spool: str = SPOOL):
        wait(f"{name} is done", lambda: name in self.listed(spool, "done"))
        payload = self.machine.file(f"{spool}/files/{name}")
        assert payload.read_bytes() == origin.payload(f"/{name}", size), f"{name} has wrong bytes"
        owner = self.machine.run("stat", "--format=%U:%a", f"{spool}/files/{name}").strip()
        assert owner == "spoolrun:600", f"{name} belongs to {owner}"
        assert self.listed(spool, "partial") == [], self.listed(spool, "partial")

    def begin(self, name: str, size: int, spool: str = SPOOL) -> int:
        """Drops a job, and returns when it has run for a while: the size of its data."""
        self.drop(name, size, rate=2 * MIB, spool=spool)
        data = self.machine.file(f"{spool}/partial/{name}.part")
        return wait(f"{name} has data", lambda: data.exists() and data.stat().st_size >= MIB and data.stat().st_size)

    def check_resumed(self, name: str, size: int, had: int, spool: str = SPOOL):
        self.check_done(name, size, spool)
        asked = [int(line.split()[1]) for line in self.requests.read_text().splitlines() if line.split()[0] == f"/{name}"]
        # The last 64 KiB of an answer that was stopped are asked for again.
        assert len(asked) == 2 and asked[0] == 0 and asked[1] >= had - 65_536, f"{name}: requests from {asked}, {had} were there"

    # The steps.

    def installed(self) -> str:
        """a fresh installation starts nothing, and everything is in its place"""
        self.install(self.package)
        run = self.machine.run
        assert run("spoolrun", "--version").strip() == self.program
        for unit in UNITS:
            assert self.state(unit) == "inactive", f"{unit} is {self.state(unit)}"
            assert self.machine.says("systemctl", "is-enabled", unit) in ("disabled", "static"), unit
        assert run("stat", "--format=%U:%G:%a", SPOOL, "/var/lib/spoolrun").split() == ["spoolrun:spoolrun:700"] * 2
        assert run("stat", "--format=%U", f"{SPOOL}/new").strip() == "spoolrun"
        said = self.machine.says("systemd-analyze", "verify", "--man=no", *UNITS, "spoolrun@test.service")
        assert said == "", said
        for file in ("bash-completion/completions/spoolrun", "zsh/vendor-completions/_spoolrun",
                     "fish/vendor_completions.d/spoolrun.fish", "doc/spoolrun/examples/hooks/deliver"):
            assert self.machine.file(f"/usr/share/{file}").exists(), file
        return f"{self.program}, {UNITS[0]} is off"

    def serves(self) -> str:
        """the service downloads under its hardening, with the options of /etc/default/spoolrun"""
        rate = "2G 08:00-23:00, none"
        self.machine.file("/etc/default/spoolrun").write_text(f"SPOOLRUN_OPTIONS=\"--jobs 3 --limit-rate '{rate}'\"\n")
        self.machine.run("systemctl", "enable", "--now", "spoolrun")
        self.drop("first", 5 * MIB)
        self.check_done("first", 5 * MIB)
        pid = self.pid("spoolrun")
        words = Path(f"/proc/{self.host_pid(pid)}/cmdline").read_text().split("\0")[:-1]
        assert words == ["/usr/bin/spoolrun", "run", "--jobs", "3", "--limit-rate", rate, SPOOL], words
        status = dict(re.findall(r"^(\w+):\s*(.*)$", self.machine.run("cat", f"/proc/{pid}/status"), re.M))
        assert {key: status[key] for key in CONFINED} == CONFINED, status
        assert self.machine.run("stat", "--format=%U", f"/proc/{pid}").strip() == "spoolrun"
        workers = json.loads(self.machine.run("spoolrun", "status", "--json", SPOOL))["workers"]
        assert [worker["state"] for worker in workers] == ["alive"], workers
        return "done as spoolrun, " + ", ".join(f"{key} {value}" for key, value in CONFINED.items())

    def host_pid(self, pid: int) -> int:
        for path in Path("/proc").glob("[0-9]*/status"):
            try:
                numbers = re.search(r"^NSpid:\s*(.*)$", path.read_text(), re.M)[1].split()
            except (OSError, TypeError):
                continue
            if numbers[1:] == [str(pid)] and self.of_machine(path.parent):
                return int(numbers[0])
        raise AssertionError(f"no process {pid} in the machine")

    def of_machine(self, process: Path) -> bool:
        return (process / "ns/pid").readlink() == Path(f"/proc/{self.machine.leader}/ns/pid").readlink()

    def tells(self) -> str:
        """journald has priorities, and systemd knows what the worker does"""
        self.machine.file(f"{SPOOL}/new/broken").write_text("not a url\n")
        wait("the broken job is judged", lambda: "broken" in self.listed(SPOOL, "failed"))
        self.machine.run("journalctl", "--sync")
        said = self.machine.run("journalctl", "--unit=spoolrun", "--output=json", "_COMM=spoolrun")
        lines = [json.loads(line) for line in said.splitlines()]
        found = {word: {line["PRIORITY"] for line in lines if f"{word}: " in line["MESSAGE"]} for word in ("first", "broken")}
        assert found == {"first": {"6"}, "broken": {"3"}}, said
        errors = self.machine.run("journalctl", "--unit=spoolrun", "--priority=err", "--output=cat", "_COMM=spoolrun")
        assert "broken: malformed" in errors and "first" not in errors, errors
        status = self.machine.says("systemctl", "show", "--property=StatusText", "--value", "spoolrun")
        assert status != "", "no status"
        self.machine.run("rm", f"{SPOOL}/failed/broken")
        return f"status: {status}"

    def stops(self) -> str:
        """a stop during a transfer is quick and no failure; a start goes on"""
        size = 12 * MIB
        had = self.begin("stopped", size)
        begun = time.monotonic()
        self.machine.run("systemctl", "stop", "spoolrun")
        seconds = time.monotonic() - begun
        assert self.state("spoolrun") == "inactive" and seconds < 15, f"{self.state('spoolrun')} after {seconds:.0f} s"
        self.machine.run("systemctl", "start", "spoolrun")
        self.check_resumed("stopped", size, had)
        return "inactive, then resumed"

    def instance(self) -> str:
        """spoolrun@NAME works on /srv/spools/NAME"""
        spool = "/srv/spools/big-one"
        self.machine.run("install", "-d", "-o", "spoolrun", "-g", "spoolrun", "-m", "700", spool)
        self.machine.file("/etc/default/spoolrun-big-one").write_text("SPOOLRUN_OPTIONS='--jobs 2'\n")
        self.machine.run("systemctl", "enable", "--now", "spoolrun@big-one")
        self.drop("instance", MIB, spool=spool)
        self.check_done("instance", MIB, spool)
        workers = json.loads(self.machine.run("spoolrun", "status", "--json", spool))["workers"]
        assert str(workers[0]["options"]["jobs"]) == "2", workers
        return spool

    def by_path(self) -> str:
        """the path unit starts a run for a dropped job, an upgrade does not wait for it, and it ends"""
        self.machine.run("systemctl", "disable", "--now", "spoolrun")
        self.machine.run("systemctl", "enable", "--now", "spoolrun-once.path", "spoolrun-once.timer")
        self.drop("by-path", MIB)
        self.check_done("by-path", MIB)
        self.drop("urgent", MIB)
        self.check_done("urgent", MIB)
        # An upgrade waits for no run, which may last for days.
        self.begin("long", 60 * MIB)
        self.install("/root/spoolrun-next.deb")
        assert self.state("spoolrun-once.service") == "activating" and "long" not in self.listed(SPOOL, "done")
        self.check_done("long", 60 * MIB)
        self.install(self.package)
        wait("the run ends", lambda: self.state("spoolrun-once.service") == "inactive")
        self.machine.run("systemctl", "disable", "--now", "spoolrun-once.path", "spoolrun-once.timer")
        return "done three times"

    def of_user(self) -> str:
        """a user's worker goes on with what `get` was interrupted in"""
        run = self.machine.run
        run("useradd", "--create-home", "--shell", "/bin/sh", "alice")
        # As `loginctl enable-linger` does, which wants more of a machine.
        run("install", "-D", "/dev/null", "/var/lib/systemd/linger/alice")
        run("systemctl", "start", f"user@{run('id', '-u', 'alice').strip()}")
        as_alice = ["runuser", "-u", "alice", "--", "env", "-C", "/home/alice", "HOME=/home/alice"]
        url = f"http://127.0.0.1:{PORT}/alice?size={12 * MIB}&rate={2 * MIB}"
        spool = "/home/alice/.local/state/spoolrun"
        run(*as_alice, "mkdir", "-p", "/home/alice/.local/state")
        get = ["spoolrun", "get", "--spool", spool, "-o", "alice", url]
        said = self.machine.says(*as_alice, "timeout", "-s", "KILL", "3", *get)
        data = list(self.machine.file(f"{spool}/partial").glob("*.part"))
        assert len(data) == 1 and data[0].stat().st_size > 0, f"{data}: {said}"
        run("systemctl", "--user", "--machine=alice@", "enable", "--now", "spoolrun")
        file = self.machine.file("/home/alice/alice")
        wait("alice has the file", file.exists)
        assert file.read_bytes() == origin.payload("/alice", 12 * MIB)
        run("systemctl", "--user", "--machine=alice@", "disable", "--now", "spoolrun")
        return "/home/alice/alice"

    def upgraded(self) -> str:
        """an upgrade restarts what runs, with jobs in flight, and changes nothing of the administrator's"""
        self.machine.run("systemctl", "enable", "--now", "spoolrun")
        size, spool = 16 * MIB, "/srv/spools/big-one"
        self.machine.run("chmod", "750", SPOOL)
        had, had_instance = self.begin("upgrade", size), self.begin("upgrade-instance", size, spool)
        pids = self.pid("spoolrun"), self.pid("spoolrun@big-one")
        self.install("/root/spoolrun-next.deb")
        after = self.pid("spoolrun"), self.pid("spoolrun@big-one")
        assert 0 not in after and not set(pids) & set(after), f"{pids} are {after}"
        self.check_resumed("upgrade", size, had)
        self.check_resumed("upgrade-instance", size, had_instance, spool)
        assert self.machine.run("stat", "--format=%a", SPOOL).strip() == "750"
        assert "--jobs 3" in self.machine.file("/etc/default/spoolrun").read_text()
        return f"resumed at {had / MIB:.1f} and {had_instance / MIB:.1f} of {size / MIB:.0f} MiB"

    def removed(self) -> str:
        """removing stops all workers, and keeps spool and options; installing again goes on"""
        size = 12 * MIB
        had = self.begin("removed", size)
        self.machine.run("apt-get", "remove", "--yes", "spoolrun")
        assert "spoolrun" not in self.machine.says("sh", "-c", "cat /proc/[0-9]*/comm").split()
        assert self.machine.file("/etc/default/spoolrun").exists() and self.listed(SPOOL, "partial") != []
        self.install(self.package)
        # It was enabled, and stays so.
        assert self.machine.says("systemctl", "is-enabled", "spoolrun") == "enabled"
        self.machine.run("systemctl", "start", "spoolrun")
        self.check_resumed("removed", size, had)
        return f"resumed at {had / MIB:.1f} of {size / MIB:.0f} MiB"

    def purged(self) -> str:
        """purging keeps a spool with receipts or files, and says so; an empty one goes"""
        said = self.machine.run("apt-get", "purge", "--yes", "spoolrun")
        assert f"{SPOOL} has jobs" in said, said
        assert "first" in self.listed(SPOOL, "files") and "first" in self.listed(SPOOL, "done")
        assert not self.machine.file("/etc/default/spoolrun").exists()
        links = list(self.machine.file("/etc/systemd").rglob("spoolrun*"))
        assert links == [], links
        self.machine.run("rm", "-r", SPOOL)
        self.install(self.package)
        self.machine.run("systemctl", "start", "spoolrun")
        self.drop("last", MIB)
        self.check_done("last", MIB)
        self.machine.run("rm", f"{SPOOL}/done/last", f"{SPOOL}/files/last")
        # What the worker has written for itself is there still.
        assert self.listed(SPOOL, "workers") != []
        self.machine.run("apt-get", "purge", "--yes", "spoolrun")
        assert not self.machine.file(SPOOL).exists(), self.machine.run("find", SPOOL)
        assert not self.machine.file("/var/lib/spoolrun").exists()
        return "kept, then gone"

    def from_first(self) -> str:
        """0.1's jobs in flight go on under this version"""
        said = self.install(self.old)
        assert self.machine.run("spoolrun", "--version").strip() != self.program, said
        self.as_user = ["runuser", "-u", "spoolrun", "--"]
        self.machine.run("chown", "-R", "spoolrun:spoolrun", SPOOL)
        self.machine.run("systemctl", "enable", "--now", "spoolrun")
        size = 16 * MIB
        had = self.begin("from-0.1", size)
        version = self.machine.run("spoolrun", "--version").strip()
        self.machine.file(f"{SPOOL}/new/waits").write_text("not a url\n")
        self.install(self.package)
        assert self.machine.run("spoolrun", "--version").strip() == self.program
        wait("the job that waits is judged", lambda: "waits" in self.listed(SPOOL, "failed"))
        self.check_resumed("from-0.1", size, had)
        return f"from {version}, resumed at {had / MIB:.1f} of {size / MIB:.0f} MiB"
