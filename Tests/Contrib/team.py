"""Tests contrib/spoolrun-team, and who may read what, with a worker and three members, each a user of its own:
`python3 -B Tests/Contrib/team.py` as root. SPOOLRUN in the environment names the program."""

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.path.abspath(os.environ.get("SPOOLRUN", ROOT / ".build/release/spoolrun"))
PATIENCE = 30 * int(os.environ.get("SPOOLRUN_TEST_PATIENCE", "1"))
WORKER, TEAM, OTHERS = 61001, 61009, 61010
MEMBERS = {"alice": 61002, "bob": 61003, "mallory": 61666}


class Origin(BaseHTTPRequestHandler):
    gate = threading.Event()

    def do_GET(self):
        found = "404" not in self.path
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", "3" if found else "0")
        self.end_headers()
        if "slow" in self.path:
            self.gate.wait(PATIENCE)
        if found:
            self.wfile.write(b"abc")

    def log_message(self, format, *args):
        pass


def command_of(section: str) -> str:
    """The commands of a section of contrib/README.md."""
    text = (ROOT / "contrib/README.md").read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    return "".join(re.findall(r"^    (.*\n)", text, re.M))


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be several users")
class TeamTests(unittest.TestCase):
    def setUp(self):
        self.place = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.place.chmod(0o755)
        self.spool = self.place / "spool"
        self.program = self.place / "spoolrun"
        shutil.copy(PROGRAM, self.program)
        subprocess.run([self.program, "init", "--spool", self.spool], check=True)
        # The installed program has the service's spool and program.
        text = (ROOT / "contrib/spoolrun-team").read_text().replace("/var/spool/spoolrun", str(self.spool))
        self.team = self.place / "spoolrun-team"
        self.team.write_text(text.replace('SPOOLRUN = "spoolrun"', f'SPOOLRUN = "{self.program}"'))
        self.team.chmod(0o755)
        subprocess.run(["chown", "-R", f"{WORKER}:{WORKER}", self.spool], check=True)
        setup = command_of("A team").replace("/var/spool/spoolrun", str(self.spool)).replace("users", str(TEAM))
        setup = setup.replace("runuser -u spoolrun --", " ".join(self.identity(WORKER, WORKER)))
        # The others install packages and the program itself, or are what a member says.
        lines = [line for line in setup.splitlines() if not line.startswith(("apt-get", "install", "echo '%", "spoolrun-team"))]
        # Who gives them twice, as after an upgrade, has a worker that starts.
        for _ in range(2):
            subprocess.run(["sh", "-euc", "\n".join(lines)], check=True)
        self.assertEqual((self.spool / "defaults").read_text(), "mode: 640\n")
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Origin)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        Origin.gate = threading.Event()
        self.addCleanup(Origin.gate.set)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        worker = subprocess.Popen([*self.identity(WORKER, WORKER), self.program, "run", "--spool", self.spool],
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)

    def identity(self, user: int, group: int) -> list[str]:
        return ["setpriv", f"--reuid={user}", f"--regid={group}", f"--groups={group}", "--"]

    def by_team(self, member: str, *words: str, program: Path | None = None, path="/usr/bin:/bin") -> subprocess.CompletedProcess:
        """What a member's call is once sudo has checked it: as the worker's user, with SUDO_USER."""
        return subprocess.run([*self.identity(WORKER, WORKER), "env", "-i", f"PATH={path}", f"SUDO_USER={member}",
                               program or self.team, *words], capture_output=True, text=True)

    def ok(self, member: str, *words: str) -> str:
        done = self.by_team(member, *words)
        self.assertEqual(done.returncode, 0, f"{member} {words}: {done}")
        return done.stdout

    def reads(self, user: int, group: int, path: str) -> bool:
        return subprocess.run([*self.identity(user, group), "cat", self.spool / path], capture_output=True).returncode == 0

    def until(self, what: str, holds):
        end = time.monotonic() + PATIENCE
        while not holds():
            self.assertLess(time.monotonic(), end, f"not yet: {what}")
            time.sleep(0.05)

    def test_each_has_own_jobs(self):
        self.ok("alice", "add", "-o", "deep/er/", f"{self.url}/data.tar?key=s3cret")
        self.ok("alice", "add", "-o", "sub/x", f"{self.url}/404?key=s3cret", "--header=Cookie: c=s3cret")
        self.ok("bob", "add", f"{self.url}/slow")
        self.until("alice's are done", lambda: "alice=x" in os.listdir(self.spool / "failed")
                   and "alice=data.tar" in os.listdir(self.spool / "done"))
        self.until("bob's runs", lambda: os.listdir(self.spool / "cur"))
        self.assertFalse(self.reads(MEMBERS["bob"], TEAM, "defaults"))
        alice, bob = self.ok("alice", "status"), self.ok("bob", "status")
        self.assertRegex(alice, r"(?m)^failed +x .*404")
        self.assertRegex(alice, r"(?m)^done +data\.tar$")
        self.assertNotIn("slow", alice)
        self.assertRegex(bob, r"^running +slow .*\n$")
        story = self.ok("alice", "status", "x")
        self.assertIn("http-404", story)
        self.assertNotIn("s3cret", alice + story)
        for told in (story, self.ok("alice", "explain", "x")):
            self.assertRegex(told, "`spoolrun-team retry '?x'?`.*`spoolrun-team cancel '?x'?`")
        # What is another's is nobody's.
        for command in ("hold", "cancel", "retry", "release", "prioritise"):
            for name in ("slow", "bob=slow", "../bob=slow", "cur/bob=slow"):
                self.assertNotEqual(self.by_team("alice", command, name).returncode, 0, f"{command} {name}")
        self.assertTrue(os.listdir(self.spool / "cur"))
        self.ok("bob", "hold", "slow")
        self.until("it is paused", lambda: "paused" in self.ok("bob", "status"))
        self.ok("bob", "cancel", "slow")
        self.assertEqual(self.ok("bob", "status"), "")
        # The team reads files, not receipts; others read nothing.
        self.assertTrue(self.reads(MEMBERS["bob"], TEAM, "files/alice/deep/er/data.tar"))
        self.assertFalse(self.reads(MEMBERS["bob"], TEAM, "done/alice=data.tar"))
        self.assertFalse(self.reads(MEMBERS["mallory"], OTHERS, "files/alice/deep/er/data.tar"))

    def test_names_are_those_that_commands_take(self):
        """The commands of contrib/README.md."""
        lines = re.findall(r"^spoolrun-team (.*)$", command_of("A team"), re.M)
        self.assertEqual([line.split()[0] for line in lines], ["add", "status", "cancel"])
        told = self.ok("alice", *lines[0].replace("https://host.example/data.tar", f"{self.url}/slow/data.tar").split())
        self.assertEqual(told, "data.tar\n")
        self.until("it runs", lambda: os.listdir(self.spool / "cur"))
        self.assertIn("survey/", self.ok("alice", "explain", "data.tar"))
        self.assertIn("disk-full:", self.ok("bob", "explain", "http-404", "disk-full"))
        self.assertNotEqual(self.by_team("bob", "explain", "alice=data.tar").returncode, 0)
        self.ok("alice", *lines[2].split())
        self.assertEqual(self.ok("alice", "status"), "")

    def test_a_members_environment_names_no_program(self):
        evil = self.place / "evil"
        evil.mkdir()
        evil.chmod(0o755)
        for name in ("spoolrun", "json.py"):
            (evil / name).write_text("#!/bin/sh\necho evil\n" if name == "spoolrun" else "print('evil')\nraise SystemExit\n")
            (evil / name).chmod(0o755)
        # As it is installed, it takes the program from a path.
        installed = self.place / "installed"
        installed.write_text(self.team.read_text().replace(f'SPOOLRUN = "{self.program}"', 'SPOOLRUN = "spoolrun"'))
        installed.chmod(0o755)
        self.assertNotIn("evil", self.by_team("mallory", "status", "x", program=installed, path=f"{evil}:/usr/bin:/bin").stdout)
        done = subprocess.run(["env", f"PYTHONPATH={evil}", self.team, "--help"], capture_output=True, text=True)
        self.assertIn("spoolrun-team add", done.stdout)

    def test_what_members_may_not(self):
        url = f"{self.url}/x"
        for words in (["add", "--from", "/etc/shadow", url], ["add", "--from=/etc/shadow"], ["add", "--spool=/x", url],
                      ["add", "--name=bob=x", url], ["add", "--root=x", url], ["add", "--mode=666", url], ["add"],
                      ["add", "-o", "../bob/x", url], ["add", "-o", "/etc/x", url], ["add", "--resolve=x", url],
                      ["add", "--header", "A: b\nurl: http://evil.example/", url], ["add", "-o", "a/../../bob", url],
                      ["status", "--textfile=/x"], ["report", "-o", "x"], ["clean"], ["run"], ["hold", "--all"], ["hold"]):
            self.assertNotEqual(self.by_team("mallory", *words).returncode, 0, words)
        for member in ("", "root/x", "a=b", "../alice", "-x"):
            self.assertNotEqual(self.by_team(member, "add", url).returncode, 0, member)
        self.assertEqual([name for folder in ("new", "failed", "done", "cur") for name in os.listdir(self.spool / folder)], [])


if __name__ == "__main__":
    unittest.main()
