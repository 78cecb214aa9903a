"""A download under a filter of system calls that compares whole registers, as RestrictAddressFamilies= of the units in
contrib/systemd does: `python3 -B Tests/Contrib/confined.py`. SPOOLRUN in the environment names the program."""

import ctypes
import os
import platform
import struct
import subprocess
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.path.abspath(os.environ.get("SPOOLRUN", ROOT / ".build/release/spoolrun"))
# AF_UNIX, AF_INET, AF_INET6, AF_NETLINK.
FAMILIES = [1, 2, 10, 16]
ALLOW, EAFNOSUPPORT = 0x7FFF0000, 0x00050000 | 97
SOCKET = {"x86_64": 41, "aarch64": 198}.get(platform.machine())


def confine():
    """Refuses socket(2) unless the 64 bits of its first argument are one of the families (seccomp(2), bpf(4))."""
    count = len(FAMILIES)
    program = [(0x20, 0, 0, 0), (0x15, 0, count + 4, SOCKET), (0x20, 0, 0, 20), (0x15, 0, count + 1, 0), (0x20, 0, 0, 16)]
    program += [(0x15, count - number, 0, family) for number, family in enumerate(FAMILIES)]
    program += [(0x06, 0, 0, EAFNOSUPPORT), (0x06, 0, 0, ALLOW)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    whole = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(filters)))
    libc = ctypes.CDLL(None, use_errno=True)
    # PR_SET_NO_NEW_PRIVS; PR_SET_SECCOMP with SECCOMP_MODE_FILTER.
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, whole, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


class Origin(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"abc")

    def log_message(self, format, *args):
        pass


@unittest.skipUnless(SOCKET, "knows the numbers of two machines")
class ConfinedTests(unittest.TestCase):
    def test_a_download_under_the_services_filter(self):
        spool = Path(self.enterContext(tempfile.TemporaryDirectory())) / "spool"
        server = ThreadingHTTPServer(("127.0.0.1", 0), Origin)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        subprocess.run([PROGRAM, "init", "--spool", spool], check=True)
        (spool / "new/x").write_text(f"http://127.0.0.1:{server.server_address[1]}/x\n")
        done = subprocess.run([PROGRAM, "run", "--once", "--spool", spool], preexec_fn=confine, capture_output=True, text=True)
        self.assertEqual((done.returncode, (spool / "files/x").read_bytes() if done.returncode == 0 else done.stderr),
                         (0, b"abc"))


if __name__ == "__main__":
    unittest.main()
