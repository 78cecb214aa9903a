"""Tests smaller programs: the hooks resolve-huggingface and resolve-oauth, spoolrun-inotify, and the package's postrm:
`python3 -B Tests/Contrib/others.py`."""

import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 30 * int(os.environ.get("SPOOLRUN_TEST_PATIENCE", "1"))
SECRET = "s3cret"


class HookTests(unittest.TestCase):
    """What a hook prints gets into logs and records."""

    def hook(self, name: str, environment: dict[str, str], place: Path = ROOT / "contrib/hooks") -> subprocess.CompletedProcess:
        return subprocess.run(["/usr/bin/python3", "-B", place / name], env={"PATH": "/usr/bin:/bin", **environment},
                              capture_output=True, text=True)

    def huggingface(self, token: str, endpoint: str) -> subprocess.CompletedProcess:
        return self.hook("resolve-huggingface", {
            "SPOOLRUN_RESOLVE": "owner/name main x", "HF_REPOSITORIES": "owner/name", "HF_TOKEN": token, "HF_ENDPOINT": endpoint})

    def test_a_failure_of_huggingface_tells_no_secret(self):
        for token, endpoint, error in ((f"{SECRET}\n", "http://127.0.0.1:1", "ConnectionRefusedError"),
                                       (f"{SECRET}\r\nx", "http://127.0.0.1:1", "ValueError"),
                                       ("x", f"http://user:{SECRET}", "InvalidURL"), ("x", f"http://[{SECRET}", "ValueError")):
            with self.subTest(error):
                done = self.huggingface(token, endpoint)
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (1, "", f"resolve-huggingface: no answer from the server: {error}\n"))

    def test_a_failure_of_oauth_tells_no_secret(self):
        place = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (place / "resolve-oauth").write_text((ROOT / "contrib/hooks/resolve-oauth").read_text())
        (place / "oauth.json").write_text(f'{{"https://h": {{"token": "http://h:{SECRET}/", "fields": {{}}}}}}')
        for url, status, said in (("https://h/x", 1, "no token from the token server: InvalidURL"),
                                  (f"https://user:{SECRET}@h\u2100/x", 100, "the URL is malformed")):
            with self.subTest(said):
                done = self.hook("resolve-oauth", {"SPOOLRUN_RESOLVE": url, "LC_ALL": "C.UTF-8"}, place)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (status, "", f"resolve-oauth: {said}\n"))


class ScriptTests(unittest.TestCase):
    def setUp(self):
        self.place = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.environment = {"PATH": f"{self.place}/bin:/usr/bin:/bin"}

    def program(self, name: str, text: str):
        (self.place / "bin").mkdir(exist_ok=True)
        (self.place / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.place / "bin" / name).chmod(0o755)

    def purge(self) -> subprocess.CompletedProcess:
        script = (ROOT / "debian/postrm").read_text()
        for directory in ("/var/spool", "/var/lib", "/etc/systemd"):
            script = script.replace(directory, f"{self.place}{directory}")
        return subprocess.run(["sh", "-c", script, "postrm", "purge"], env=self.environment, capture_output=True, text=True)

    def test_a_spool_that_cannot_be_looked_through_stays_and_the_package_goes(self):
        spool = self.place / "var/spool/spoolrun"
        spool.mkdir(parents=True)
        self.program("find", "echo find: Input/output error >&2; exit 1")
        done = self.purge()
        self.assertEqual((done.returncode, spool.is_dir()), (0, True), done)
        self.assertIn("so it stays", done.stdout)
        (self.place / "bin/find").unlink()
        self.assertEqual((self.purge().returncode, spool.exists()), (0, False))

    def test_what_a_run_of_inotify_leaves_for_seconds_gets_another(self):
        """No event ever comes."""
        for name in ("new", "urgent", "partial"):
            (self.place / "spool" / name).mkdir(parents=True)
        (self.place / "spool/new/young").touch()
        self.program("inotifywait", "exec sleep 1000")
        self.program("spoolrun", f'[ "$1" = init ] || echo "$@" >>{self.place}/runs')
        script = self.place / "spoolrun-inotify"
        script.write_text((ROOT / "contrib/spoolrun-inotify").read_text().replace("patience=15", "patience=0.1"))
        loop = subprocess.Popen(["bash", script, self.place / "spool"], env=self.environment)
        self.addCleanup(loop.wait)
        self.addCleanup(loop.terminate)
        runs, end = self.place / "runs", time.monotonic() + PATIENCE
        while not runs.exists() or len(runs.read_text().splitlines()) < 3:
            self.assertLess(time.monotonic(), end, "it runs again")
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
