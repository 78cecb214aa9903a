"""Tests contrib/aria2-rpc with a worker, a server and Chromium: `python3 -B Tests/Contrib/aria2_rpc.py`. SPOOLRUN in
the environment names the program. The calls are those that AriaNg, aria2p and browser extensions make."""

import base64
import errno
import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "contrib/aria2-rpc"))
import jobs  # noqa: E402
from methods import Methods  # noqa: E402

PROGRAM = os.path.abspath(os.environ.get("SPOOLRUN", ROOT / ".build/release/spoolrun"))
PATIENCE = 30 * int(os.environ.get("SPOOLRUN_TEST_PATIENCE", "1"))
TOKEN = "a-token-of-the-tests"
PAYLOAD = b"payload " * 8192
# What aria2c 1.36.0 answers to tellStatus for a download by http, but for verifiedLength and the like.
MEMBERS = {"bitfield", "completedLength", "connections", "dir", "downloadSpeed", "errorCode", "errorMessage", "files",
           "gid", "numPieces", "pieceLength", "status", "totalLength", "uploadLength", "uploadSpeed"}
# aria2RpcService.js of AriaNg: what it asks for in its lists.
ARIANG_KEYS = ["gid", "totalLength", "completedLength", "uploadSpeed", "downloadSpeed", "connections", "numSeeders",
               "seeder", "status", "errorCode", "verifiedLength", "verifyIntegrityPending", "files", "bittorrent", "infoHash"]


class Origin(BaseHTTPRequestHandler):
    """Files under every name; `/slow…` never ends until `gate` is set, `/404…` is not there."""
    gate = threading.Event()
    requests: list[tuple[str, dict]] = []

    def do_GET(self):
        self.requests.append((self.path, dict(self.headers)))
        found = not self.path.startswith("/404")
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(PAYLOAD) if found else 0))
        self.end_headers()
        if found:
            try:
                self.wfile.write(PAYLOAD[:1024])
                self.wfile.flush()
                if self.path.startswith("/slow"):
                    self.gate.wait(PATIENCE)
                self.wfile.write(PAYLOAD[1024:])
            except OSError:
                pass

    def log_message(self, format, *args):
        pass


class Case(unittest.TestCase):
    def setUp(self):
        self.place = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.spool = self.place / "spool"
        self.files = self.spool / "files"
        subprocess.run([PROGRAM, "init", "--spool", self.spool], check=True)
        (self.place / "token").write_text(TOKEN + "\n")
        (self.place / "token").chmod(0o600)
        Origin.gate = threading.Event()
        Origin.requests = []
        server = ThreadingHTTPServer(("127.0.0.1", 0), Origin)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(Origin.gate.set)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self.bridge = None
        self.start()

    def start(self, *options: str):
        """Starts the bridge, again if it runs."""
        self.stop()
        (self.place / "home").mkdir(exist_ok=True)
        self.bridge = subprocess.Popen(
            [sys.executable, "-B", ROOT / "contrib/aria2-rpc/aria2-rpc", "--port", "0", "--program", PROGRAM,
             "--token-file", self.place / "token", *options, self.spool], stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        line = self.bridge.stderr.readline()
        self.assertIn("/jsonrpc", line)
        self.port = int(re.search(r":(\d+)/", line)[1])

    def stop(self):
        if self.bridge:
            self.bridge.terminate()
            self.said = self.bridge.communicate()[1]
            self.bridge = None
            self.assertNotIn("Traceback", self.said)

    def worker(self):
        worker = subprocess.Popen([PROGRAM, "run", "--spool", self.spool], stderr=subprocess.DEVNULL)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)

    def send(self, body, headers: dict | None = None, method="POST", path="/jsonrpc"):
        """The status and the body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, body if method == "POST" else None, headers or {})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        self.headers = response.headers
        return response.status, json.loads(text) if text[:1] in (b"{", b"[") else text

    def ask(self, method: str, *params, token: str = TOKEN) -> dict:
        params = ([f"token:{token}"] if method.startswith("aria2.") else []) + list(params)
        return self.send({"jsonrpc": "2.0", "id": "1", "method": method, "params": params})[1]

    def call(self, method: str, *params):
        answer = self.ask(method, *params)
        self.assertIn("result", answer, f"{method}: {answer}")
        return answer["result"]

    def refused(self, method: str, *params) -> str:
        answer = self.ask(method, *params)
        self.assertIn("error", answer, f"{method} {params}")
        self.assertEqual(set(answer["error"]), {"code", "message"})
        return answer["error"]["message"]

    def until(self, what: str, holds):
        end = time.monotonic() + PATIENCE
        while not (result := holds()):
            self.assertLess(time.monotonic(), end, f"not yet: {what}")
            time.sleep(0.05)
        return result

    def wait(self, gid: str, status: str) -> dict:
        def told():
            status_ = self.call("aria2.tellStatus", gid)
            return status_["status"] == status and status_
        return self.until(f"{gid} is {status}", told)

    def dropped(self) -> list[Path]:
        return [path for folder in ("new", "urgent", "hold", "tmp", "failed") for path in (self.spool / folder).iterdir()]


class DownloadTests(Case):
    def test_a_download_with_all_options(self):
        self.worker()
        digest = hashlib.sha256(PAYLOAD).hexdigest()
        gid = self.call("aria2.addUri", [f"{self.url}/a b?key=s3cret"], {
            "out": "one.bin", "dir": str(self.files / "sub"), "header": ["Cookie: c=1", "Accept-Encoding: gzip, br"],
            "referer": "http://page.example/x", "user-agent": "Browser/1", "checksum": f"sha-256={digest}",
            "split": "16", "max-download-limit": "50M", "max-connection-per-server": 1, "unheard-of": "x"})
        self.assertRegex(gid, "^[0-9a-f]{16}$")
        told = self.wait(gid, "complete")
        self.assertEqual(set(told), MEMBERS)
        self.assertEqual((self.files / "sub/one.bin").read_bytes(), PAYLOAD)
        self.assertEqual(told["files"][0]["path"], str(self.files / "sub/one.bin"))
        self.assertEqual(told["totalLength"], told["completedLength"], str(len(PAYLOAD)))
        path, sent = Origin.requests[0]
        self.assertEqual(path, "/a%20b?key=s3cret")
        self.assertEqual((sent["Cookie"], sent["User-Agent"], sent["Referer"]), ("c=1", "Browser/1", "http://page.example/x"))
        self.assertEqual(self.call("aria2.getOption", gid)["checksum"], f"sha-256={digest}")

    def test_a_referer_that_is_of_no_server(self):
        self.call("aria2.addUri", ["http://host.example/x"], {"referer": "about:blank"})
        self.assertNotIn("referer", (self.spool / "new/x").read_text())

    def test_secrets_are_not_told(self):
        gid = self.call("aria2.addUri", ["http://name:pa55@host.example/x?key=s3cret#f"], {
            "header": "Authorization: Bearer s3cret", "pause": "true"})
        other = self.call("aria2.addUri", ["http://host.example/y"], {"http-user": "na me", "http-passwd": "pa55"})
        self.assertIn("http://na%20me:pa55@host.example/y", (self.spool / "new/y").read_text())
        for method in ("tellStatus", "getOption", "getFiles", "getUris"):
            for each in (gid, other):
                said = json.dumps(self.call(f"aria2.{method}", each))
                self.assertNotRegex(said, "s3cret|pa55")
        self.assertEqual(self.call("aria2.getUris", gid)[0]["uri"], "http://host.example/x")
        self.assertEqual((self.spool / "hold/x").stat().st_mode & 0o777, 0o600)

    def test_names_that_are_taken(self):
        (self.files / "a.zip").write_text("is there")
        gids = [self.call("aria2.addUri", [f"{self.url}/{part}/a.zip"]) for part in "xyz"]
        self.assertEqual(len(set(gids)), 3)
        self.worker()
        for gid in gids:
            self.wait(gid, "complete")
        self.assertEqual((self.files / "a.zip").read_text(), "is there")
        self.assertEqual({path.name for path in self.files.iterdir()}, {"a.zip", "a.1.zip", "a.2.zip", "a.3.zip"})
        self.assertEqual({path for path, _ in Origin.requests}, {f"/{part}/a.zip" for part in "xyz"})

    def test_a_metalink(self):
        pieces = f'<pieces length="{len(PAYLOAD)}" type="sha-256"><hash>{hashlib.sha256(PAYLOAD).hexdigest()}</hash></pieces>'
        text = ('<metalink xmlns="urn:ietf:params:xml:ns:metalink">'
                + "".join(f'<file name="{name}"><size>{len(PAYLOAD)}</size>{pieces}<url>{self.url}/{name}</url></file>'
                          for name in ("m1", "m2")) + "</metalink>")
        metalink = base64.b64encode(text.encode()).decode()
        for name in ("all-proxy", "load-cookies", "http-user", "http-passwd", "user-agent", "max-download-limit", "header"):
            self.refused("aria2.addMetalink", metalink, {name: ["A: b"] if name == "header" else "5"})
        self.assertEqual(self.dropped(), [])
        gids = self.call("aria2.addMetalink", metalink, {"dir": "set", "max-download-limit": "0"})
        self.worker()
        for gid in gids:
            self.wait(gid, "complete")
        self.assertEqual(sorted(path.name for path in (self.files / "set").iterdir()), ["m1", "m2"])
        self.assertIn("BitTorrent", self.refused("aria2.addTorrent", "x"))


class SteeringTests(Case):
    def test_pause_go_on_and_remove(self):
        self.worker()
        gid = self.call("aria2.addUri", [f"{self.url}/slow"], {"out": "s"})
        self.wait(gid, "active")
        self.assertEqual([job["gid"] for job in self.call("aria2.tellActive", ARIANG_KEYS)], [gid])
        self.assertEqual(self.call("aria2.getGlobalStat")["numActive"], "1")
        self.assertEqual(self.call("aria2.forcePause", gid), gid)
        self.wait(gid, "paused")
        self.assertIn("cannot be paused now", self.refused("aria2.pause", gid))
        self.assertEqual([job["gid"] for job in self.call("aria2.tellWaiting", 0, 1000, ARIANG_KEYS)], [gid])
        self.start()
        self.wait(gid, "paused")
        self.call("aria2.unpause", gid)
        self.wait(gid, "active")
        self.call("aria2.pauseAll")
        self.wait(gid, "paused")
        self.call("aria2.unpauseAll")
        self.wait(gid, "active")
        self.assertIn("Could not remove", self.refused("aria2.removeDownloadResult", gid))
        self.call("aria2.remove", gid)
        self.assertEqual(self.call("aria2.tellStatus", gid, ["status"]), {"status": "removed"})
        self.assertEqual(self.call("aria2.removeDownloadResult", gid), "OK")
        self.assertIn("not found", self.refused("aria2.tellStatus", gid))
        self.until("its data is gone", lambda: not list((self.spool / "partial").iterdir()))

    def test_a_download_that_is_removed_and_added_again(self):
        gid = self.call("aria2.addUri", [f"{self.url}/x"])
        self.call("aria2.remove", gid)
        self.assertEqual(self.call("aria2.addUri", [f"{self.url}/x"]), gid)
        self.worker()
        self.wait(gid, "complete")
        self.call("aria2.removeDownloadResult", gid)
        self.assertEqual([path.name for path in (self.spool / "done").iterdir()], ["archive"])

    def test_results_that_are_removed_stay_in_the_archive(self):
        self.worker()
        gids = [self.call("aria2.addUri", [f"{self.url}/{name}"]) for name in ("a", "b", "c")]
        for gid in gids:
            self.wait(gid, "complete")
        lost = self.call("aria2.addUri", [f"{self.url}/404"])
        self.assertIn("http-404", self.wait(lost, "error")["errorMessage"])
        newest = [job["gid"] for job in self.call("aria2.tellStopped", -1, 1000, ["gid"])]
        self.assertEqual((newest[0], set(newest)), (lost, {*gids, lost}))
        self.assertEqual(len(self.call("aria2.tellStopped", 1, 2)), 2)
        self.call("aria2.removeDownloadResult", gids[0])
        self.call("aria2.purgeDownloadResult")
        self.assertEqual([path.name for path in (self.spool / "done").iterdir()], ["archive"])
        self.assertEqual(sorted(path.name for path in (self.spool / "done/archive").glob("*/*")), ["a", "b", "c"])
        self.assertEqual(subprocess.run([PROGRAM, "verify", "--spool", self.spool]).returncode, 0)
        # It is what needs a person.
        self.assertEqual(self.call("aria2.tellStatus", lost)["errorCode"], "3")
        self.call("aria2.removeDownloadResult", lost)
        self.assertEqual(list((self.spool / "failed").iterdir()), [])

    def test_a_receipt_in_the_place_of_the_archive_is_told(self):
        self.worker()
        gid = self.call("aria2.addUri", [f"{self.url}/a"])
        self.wait(gid, "complete")
        (self.spool / "done/a").rename(self.spool / "done/archive")
        self.assertIn("is a receipt", self.refused("aria2.purgeDownloadResult"))

    def test_a_job_that_is_wrong_spoils_no_list(self):
        for name, line in [("odd", "size: 3G"), ("root", "root: ../.."), ("nul", "root: a\0b")]:
            (self.spool / "failed" / name).write_text(f"url: {self.url}/x\n{line}\n")
        os.mkfifo(self.spool / "failed/pipe")
        os.mkfifo(self.spool / "failed/other.record")
        (self.spool / "failed/pipe.record").write_text("failed: 2026-11-27T12:00:00Z code=not-a-file\n")
        self.assertEqual(len(self.call("aria2.tellStopped", 0, 10)), 3)
        self.call("aria2.addUri", [f"{self.url}/x"])

    def test_a_failed_job_with_another_digest_is_another(self):
        self.worker()
        (self.spool / "failed/y").write_text(f"url: {self.url}/y\nsha256: {'0' * 64}\n")
        right = self.call("aria2.addUri", [f"{self.url}/y"], {"checksum": f"sha-256={hashlib.sha256(PAYLOAD).hexdigest()}"})
        self.wait(right, "complete")

    def test_a_failed_job_is_tried_again_as_it_is(self):
        """AriaNg and aria2p drop what they were told, and then remove the failed one."""
        self.worker()
        gid = self.call("aria2.addUri", [f"{self.url}/404?key=s3cret"], {"out": "x", "header": ["Cookie: c=1"]})
        told, options = self.wait(gid, "error"), self.call("aria2.getOption", gid)
        again = self.call("aria2.addUri", [uri["uri"] for uri in told["files"][0]["uris"]], options)
        self.call("aria2.removeDownloadResult", gid)
        self.wait(again, "error")
        self.assertEqual([path for path, _ in Origin.requests], ["/404?key=s3cret"] * 2)
        self.assertEqual(Origin.requests[1][1]["Cookie"], "c=1")
        self.call("aria2.unpause", again)
        self.until("it is tried again", lambda: len(Origin.requests) == 3)
        # With another query, such as one that is signed anew, it is another job.
        self.wait(again, "error")
        self.call("aria2.addUri", [f"{self.url}/404?key=new"], {"out": "x"})
        self.until("the other is tried", lambda: Origin.requests[-1][0] == "/404?key=new")

    def test_a_failed_job_is_tried_again_with_every_line(self):
        """A comment may forbid something, and `add` drops none of these lines as they are."""
        request = ("# no secrets in the clear\n# signed by key\nurl:http://host.example/x?key=s3cret\n\npriority: high\n"
                   "expires: 2020-01-01T00:00:00Z\noutput: x\n# complete\n")
        failed = self.spool / "failed/x~2"
        failed.write_bytes(request.encode() + b' failed:2026-11-27T12:00:00Z code=expired reason="caf\\xC3\\xA9"\nfai')
        [told] = self.call("aria2.tellStopped", 0, 10)
        self.assertEqual(told["errorMessage"], "expired: caf\xe9")
        again = [uri["uri"] for uri in told["files"][0]["uris"]], self.call("aria2.getOption", told["gid"])
        self.call("aria2.addUri", *again)
        self.assertEqual((self.spool / "new/x~3").read_text(), request)
        if os.geteuid() == 0:
            os.chown(failed, 61002, 61002)
            self.call("aria2.addUri", *again)
            self.assertEqual((self.spool / "new/x~4").read_text(), request.replace("# signed by key\n", ""))
            failed.write_text(request + "# x\n" * 17_000)
            self.assertIn("64 KiB", self.refused("aria2.addUri", *again))

    def test_a_receipt_and_a_failed_job_of_one_name(self):
        for folder, line in (("done", "done: 2026-10-27T12:00:00Z output=x"), ("failed", "failed: 2026-10-28T12:00:00Z code=io")):
            (self.spool / folder / "x").write_text(f"url: http://host.example/x\n{line}\n")
        (self.spool / "partial/x.part").write_text("data")
        [told] = self.call("aria2.tellStopped", 0, 10, ["gid", "status"])
        self.assertEqual((told["status"], self.call("aria2.getGlobalStat")["numStopped"]), ("error", "1"))
        self.call("aria2.removeDownloadResult", told["gid"])
        self.assertTrue((self.spool / "done/archive/2026-10/x").exists())
        self.assertTrue((self.spool / "failed/x").exists() and (self.spool / "partial/x.part").exists())
        self.call("aria2.removeDownloadResult", told["gid"])
        self.assertFalse((self.spool / "failed/x").exists() or (self.spool / "partial/x.part").exists())

    def test_to_the_front(self):
        gid = self.call("aria2.addUri", ["http://host.example/x"])
        self.assertEqual(self.call("aria2.changePosition", gid, 0, "POS_SET"), 0)
        self.assertTrue((self.spool / "urgent/x").exists())
        self.assertIn("front", self.refused("aria2.changePosition", gid, 3, "POS_SET"))

    def test_subscriptions_and_jobs_of_others(self):
        (self.spool / "hold/feed").write_bytes(b"\xef\xbb\xbfurl:https://host.example/feed\n\tevery:1h\n")
        (self.spool / "standing").mkdir(exist_ok=True)
        (self.spool / "standing/news").write_text("url: https://host.example/news\nevery: 1h\n")
        (self.spool / "new/by hand").write_bytes(b"https://host.example/\xff\xe2\x80\xa8x\r\n")
        (self.spool / "new/.hidden").write_text("x")
        (self.spool / "new/folder").mkdir()
        told = self.call("aria2.tellWaiting", 0, 10)
        self.assertEqual([job["files"][0]["uris"][0]["uri"] for job in told], ["https://host.example/\\xff\u2028x"])
        for method, folder in (("pauseAll", "hold"), ("unpauseAll", "new")):
            self.call(f"aria2.{method}")
            self.assertTrue((self.spool / folder / "by hand").exists())
            self.assertTrue((self.spool / "hold/feed").exists() and (self.spool / "standing/news").exists())

    def test_a_forged_journal_is_not_believed(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to be another user")
        path = self.spool / "new/x"
        path.write_text("https://host.example/x\nfailed: 2026-01-01T00:00:00Z code=forged reason=\"x\"\n"
                        "done: 2026-01-01T00:00:00Z output=../../etc/passwd directory=/etc\n")
        os.chown(path, 61002, 61002)
        [told] = self.call("aria2.tellWaiting", 0, 10)
        self.assertNotIn("forged", json.dumps(told))
        self.assertEqual(told["files"][0]["path"], str(self.files / "x"))


class ProtocolTests(Case):
    def test_what_clients_ask_first(self):
        self.assertIn("aria2.addUri", self.call("system.listMethods"))
        version = self.call("aria2.getVersion")
        self.assertIsInstance(version["enabledFeatures"], list)
        self.assertEqual(self.call("aria2.getSessionInfo"), self.call("aria2.getSessionInfo"))
        self.assertEqual(self.call("aria2.saveSession"), "OK")
        self.assertEqual(self.call("aria2.getGlobalOption")["dir"], str(self.files))
        self.assertIn("its own", self.refused("aria2.changeGlobalOption", {"max-concurrent-downloads": "3"}))

    def test_many_calls_in_one(self):
        token = f"token:{TOKEN}"
        calls = [{"methodName": "aria2.getGlobalStat", "params": [token]},
                 {"methodName": "aria2.tellStatus", "params": [token, "0" * 16]},
                 {"methodName": "aria2.getVersion", "params": ["token:wrong"]},
                 {"methodName": "system.multicall", "params": [[]]}, 5]
        answers = self.call("system.multicall", calls)
        self.assertEqual(answers[0][0]["numActive"], "0")
        self.assertEqual([answer["code"] for answer in answers[1:]], [1, 1, -32601, -32600])
        batch = [{"jsonrpc": "2.0", "id": number, "method": "aria2.getVersion", "params": [token]} for number in (1, 2)]
        self.assertEqual([answer["id"] for answer in self.send(batch)[1]], [1, 2])
        params = base64.b64encode(json.dumps([token]).encode()).decode()
        status, answer = self.send(b"", method="GET", path=f"/jsonrpc?method=aria2.getGlobalStat&id=x&params={params}")
        self.assertEqual((status, answer["id"], answer["result"]["numWaiting"]), (200, "x", "0"))
        self.assertEqual(self.send(b"", method="GET", path="/jsonrpc?method=system.listMethods&jsoncallback=f")[0], 400)

    def test_only_with_the_token(self):
        for token in ("", "wrong", TOKEN + "x", TOKEN[:-1], "ä"):
            answer = self.ask("aria2.addUri", ["http://host.example/x"], token=token)
            self.assertEqual(answer["error"], {"code": 1, "message": "Unauthorized"})
        status, answer = self.send({"jsonrpc": "2.0", "id": 1, "method": "aria2.pauseAll"})
        self.assertEqual((status, answer["error"]["message"]), (400, "Unauthorized"))
        self.assertEqual(self.dropped(), [])

    def test_pages_of_other_sites(self):
        call = {"jsonrpc": "2.0", "id": 1, "method": "aria2.addUri", "params": [f"token:{TOKEN}", ["http://host.example/x"]]}
        own = f"http://localhost:{self.port}"
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": f"evil.example:{self.port}"},
                        {"Host": "127.0.0.1"}, {"Host": ""}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": own + ".evil"}):
            for method in ("POST", "GET", "OPTIONS"):
                status, _ = self.send(call, headers, method)
                self.assertEqual(status, 403, f"{method} {headers}")
                self.assertIsNone(self.headers["Access-Control-Allow-Origin"])
        self.assertEqual(self.dropped(), [])
        self.assertEqual(self.send(call, {"Origin": own})[0], 200)
        extension = "chrome-extension://mpkodccbngfoacfalldjimigbofkhgjn"
        self.start("--origin", extension)
        self.assertEqual(self.send(b"", {"Origin": extension}, "OPTIONS")[0], 200)
        self.assertEqual(self.headers["Access-Control-Allow-Origin"], extension)
        self.assertEqual(self.send(call, {"Origin": extension})[0], 200)

    def test_bodies_that_are_no_calls(self):
        deep = b"[" * 100_000
        for body in (b"", b"{", b"\xff", deep, b"[]", b"1", b'"x"', b"null", b"{}", b'{"method": 1}',
                     b'{"method": "aria2.tellStatus", "params": {}}', b'{"method": "aria2.__init__"}',
                     b'{"method": "aria2.call_addUri"}', b'{"method": "os.system", "params": ["x"]}'):
            status, answer = self.send(body)
            self.assertIn(status, (400, 404, 500), body[:80])
            self.assertIn("error", answer, body[:80])
        for known in (b"NaN", b"-Infinity", b"1e999"):
            self.assertIsNone(self.send(b'{"id": %s, "method": "system.listMethods"}' % known)[1]["id"])
        self.assertEqual(self.send(b"", {"Content-Length": str(3 << 20)})[0], 413)
        self.assertEqual(self.send(b"x", {"Transfer-Encoding": "chunked", "Content-Length": ""})[0], 411)
        self.assertEqual(self.send(b"{}", path="/rpc")[0], 404)
        for method in ("tellStatus", "pause", "tellWaiting", "addUri", "changePosition", "removeDownloadResult"):
            for params in ([], [None], [[]], [{}], ["x", 2], ["x", "y", 3], ["a", "b", "c", "d", "e"], [[1], 5], [["x"], []]):
                self.refused(f"aria2.{method}", *params)
        self.assertEqual(self.dropped(), [])

    def test_nothing_leaves_the_output_directory(self):
        """Nor is any line of a job the client's own."""
        os.symlink("/etc", self.files / "link")
        url = "http://host.example/x"
        wrong = [{"out": "../x"}, {"out": "/etc/x"}, {"out": "a/../../x"}, {"out": "x\nheader: Host: y"}, {"out": "a//b"},
                 {"dir": "/etc"}, {"dir": ".."}, {"dir": "a/../../.."}, {"dir": str(self.files / "..")}, {"dir": "~/x"},
                 {"dir": str(self.files) + "x"}, {"dir": str(self.files / "link")}, {"dir": "/C:/x"},
                 {"header": "A: b\r\nsha256: 00"}, {"header": ["A: b\nurl: http://evil.example/"]}, {"header": "Range: bytes=1-"},
                 {"header": [5]}, {"header": {"A": "b"}}, {"referer": "x\ny"}, {"checksum": "sha-224=00"}, {"checksum": "sha-256=0"},
                 {"user-agent": ["x"]}, {"split": "many"}, {"all-proxy": "http://evil.example/"}, {"gid": "0" * 16},
                 {"max-tries": "1\u2028x"}, {"out": "\ud800"}, {"max-download-limit": "fast"}]
        for options in wrong:
            self.refused("aria2.addUri", [url], options)
        for bad in ("file:///etc/passwd", "magnet:?xt=urn:btih:x", "", "x", url + "\nurl: y", "ftp://host.example/x", 5, None,
                    "http://", "http://host.example/" + "x" * 70_000):
            self.refused("aria2.addUri", [bad])
        self.assertEqual(self.dropped(), [])
        os.makedirs(self.spool / "roots")
        os.makedirs(self.place / "music")
        os.symlink(self.place / "music", self.spool / "roots/music")
        self.call("aria2.addUri", [url], {"dir": str(self.place / "music/new")})
        self.assertIn("output: new/x\nroot: music\n", (self.spool / "new/x").read_text())

    def test_the_token_file(self):
        command = [sys.executable, "-B", ROOT / "contrib/aria2-rpc/aria2-rpc", "--port", "0", "--program", PROGRAM, self.spool]
        for text, mode in (("short", 0o600), (TOKEN, 0o644)):
            (self.place / "token").write_text(text)
            (self.place / "token").chmod(mode)
            ended = subprocess.run([*command, "--token-file", self.place / "token"], capture_output=True, text=True)
            self.assertEqual(ended.returncode, 1)
            self.assertNotIn(text, ended.stderr)
        made = self.place / "config/made"
        with subprocess.Popen([*command, "--token-file", made], stderr=subprocess.PIPE, text=True) as bridge:
            bridge.stderr.readline()
            bridge.terminate()
        self.assertEqual((made.stat().st_mode & 0o777, len(made.read_text()) > 30), (0o600, True))


class FileTests(Case):
    """In this process, where calls can be made to fail."""

    def test_a_job_that_comes_meanwhile_is_not_replaced(self):
        for name in ("tmp/draft", "new/x"):
            (self.spool / name).write_text(name)
        old, new = (os.fsencode(self.spool / name) for name in ("tmp/draft", "new/x"))
        with mock.patch("jobs.renameat2", None), mock.patch("os.path.lexists", return_value=False):
            self.assertRaises(FileExistsError, jobs.move, old, new)
            self.assertEqual((self.spool / "new/x").read_text(), "new/x")
            jobs.move(old, new + b"~2")
        self.assertEqual([path.name for path in self.dropped()], ["x", "x~2"])

    def test_a_metalink_is_dropped_whole_or_not_at_all(self):
        files = "".join(f'<file name="{name}"><url>http://host.example/{name}</url></file>' for name in ("m1", "m2"))
        metalink = base64.b64encode(f'<metalink xmlns="urn:ietf:params:xml:ns:metalink">{files}</metalink>'.encode())
        spool = jobs.Spool(str(self.spool), PROGRAM, None)
        drop = spool.drop

        def full(name: bytes, *rest):
            if name == b"m2":
                raise OSError(errno.ENOSPC, "No space left on device", "m2")
            return drop(name, *rest)
        with mock.patch.object(spool, "drop", full):
            with self.assertRaisesRegex(jobs.Refused, "No space"):
                Methods(spool, TOKEN).call("aria2.addMetalink", [f"token:{TOKEN}", metalink.decode(), {"dir": "-x"}])
        self.assertEqual(self.dropped(), [])

    def test_of_a_strangers_file_little_is_kept(self):
        path = self.spool / "new/x"
        path.write_text("https://host.example/x\n" + "".join(f"a{number}: x\n" for number in range(100_000)))
        [job] = jobs.Spool(str(self.spool), PROGRAM, None).jobs(["new"])
        job.read()
        self.assertEqual(job.keys, {"url": ["https://host.example/x"]})
        if os.geteuid() == 0:
            os.chown(path, 61002, 61002)
            self.assertLess(len(job.contents()[0]), 70_000)


# In CI nothing is left out.
@unittest.skipUnless(shutil.which("chromium") or os.environ.get("CI"), "needs chromium")
class BrowserTests(Case):
    """What pages may do, by a browser's own rules."""

    PAGE = """<!doctype html><title>x</title><pre id=said></pre><script>
      const url = new URLSearchParams(location.search).get("rpc") || "/jsonrpc";
      const ask = (method, params) => fetch(url, {method: "POST", headers: {"Content-Type": "application/json"},
        body: JSON.stringify({jsonrpc: "2.0", id: "1", method: method, params: ["token:TOKEN", ...params]})});
      ask("aria2.addUri", [["http://host.example/x"]]).then(answer => answer.json())
        .then(answer => ask("aria2.tellStatus", [answer.result, ["status"]])).then(answer => answer.json())
        .then(answer => said.textContent = "says " + answer.result.status, () => said.textContent = "says nothing");
      </script>""".replace("TOKEN", TOKEN)

    def visit(self, url: str, *options: str) -> str:
        result = subprocess.run(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.place}/profile",
             "--virtual-time-budget=5000", *options, "--dump-dom", url],
            env=os.environ | {"HOME": str(self.place)}, capture_output=True, text=True, timeout=PATIENCE * 4)
        # A plain text is shown in such an element, too.
        return re.search(r"<pre[^>]*>(.*?)</pre>", result.stdout, re.S)[1].strip()

    def test_pages(self):
        page = self.place / "index.html"
        page.write_text(self.PAGE)
        self.start("--page", str(page))
        self.assertEqual(self.visit(f"http://localhost:{self.port}/"), "says waiting")
        [made] = self.dropped()
        made.unlink()
        rpc = f"http://localhost:{self.port}/jsonrpc"
        self.assertEqual(self.visit(f"file://{page}?rpc={rpc}"), "says nothing")
        # A name that leads here is another site's still.
        rebound = f"http://evil.example:{self.port}/"
        self.assertEqual(self.visit(rebound, "--host-resolver-rules=MAP evil.example 127.0.0.1"), "wrong Host")
        self.assertEqual(self.dropped(), [])
        self.start("--origin", "null")
        self.assertEqual(self.visit(f"file://{page}?rpc=http://localhost:{self.port}/jsonrpc"), "says waiting")


if __name__ == "__main__":
    unittest.main()
