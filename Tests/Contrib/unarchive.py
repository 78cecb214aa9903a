"""Tests contrib/unarchive: `python3 -B Tests/Contrib/unarchive.py`, for some of it as root."""

import ctypes
import errno
import gzip
import os
import runpy
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

PROGRAM = Path(__file__).resolve().parents[2] / "contrib/unarchive"
OWNER, OTHER = 61001, 61002
LINE = "2026-01-01T00:00:00Z\ta\t-\t-\t-\t-\t2026-01-01T00:00:00Z\turl: http://h/a\\n\n"
LINK = os.link


class UnarchiveTests(unittest.TestCase):
    def setUp(self):
        self.place = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.archive = self.place / "2026-01.tsv.gz"
        self.archive.write_bytes(gzip.compress(LINE.encode()))
        self.addCleanup(os.umask, os.umask(0o077))

    def run_it(self):
        with mock.patch.object(sys, "argv", ["unarchive", str(self.archive)]):
            runpy.run_path(str(PROGRAM))

    def test_it_flushes_no_other_file_system(self):
        library = mock.Mock()
        library.syncfs.side_effect = lambda place: self.flushed.append(os.fstat(place).st_ino) or 0
        self.flushed = []
        with mock.patch.object(os, "sync") as sync, mock.patch.object(ctypes, "CDLL", return_value=library):
            self.run_it()
        sync.assert_not_called()
        self.assertEqual(self.flushed, [(self.place / "2026-01").stat().st_ino])
        self.assertEqual((self.place / "2026-01/a").read_text(), "url: http://h/a\n")
        self.assertFalse(self.archive.exists())

    def test_an_archive_whose_receipts_may_not_be_on_disk_stays(self):
        library = mock.Mock()
        library.syncfs.return_value = -1
        with mock.patch.object(ctypes, "CDLL", return_value=library), self.assertRaises(SystemExit):
            self.run_it()
        self.assertTrue(self.archive.exists())
        # It is the same when it comes again.
        self.run_it()
        self.assertFalse(self.archive.exists())

    def put(self):
        (self.place / "2026-01").mkdir(exist_ok=True)
        (self.place / "2026-01/a").write_text("another's\n")

    def expect_both(self):
        files = {str(path.relative_to(self.place)): path.read_text() for path in self.place.glob("**/*") if path.is_file()}
        self.assertEqual(files, {"2026-01/a": "another's\n", "2026-01~2/a": "url: http://h/a\n"})

    def test_a_receipt_that_comes_meanwhile_stays(self):
        def link(old, new):
            self.put()
            LINK(old, new)

        with mock.patch.object(os, "link", link):
            self.run_it()
        self.expect_both()

    def test_a_file_system_without_links(self):
        self.put()
        for number in (errno.EPERM, errno.EOPNOTSUPP):
            with self.subTest(number), mock.patch.object(os, "link", side_effect=OSError(number, "no links")) as link:
                self.archive.write_bytes(gzip.compress(LINE.encode()))
                self.run_it()
                link.assert_called()
                self.expect_both()

    def test_a_draft_of_a_run_that_died_harms_no_receipt(self):
        with mock.patch.object(os, "unlink"):
            self.run_it()
        self.archive.write_bytes(gzip.compress(LINE.replace("\ta\t", "\tb\t").replace("h/a", "h/b").encode()))
        self.run_it()
        self.assertEqual([(self.place / "2026-01" / name).read_text() for name in "ab"],
                         ["url: http://h/a\n", "url: http://h/b\n"])


@unittest.skipUnless(os.geteuid() == 0, "needs root, to be several users")
class UserTests(unittest.TestCase):
    def setUp(self):
        self.place = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.place.chmod(0o755)

    def archive(self, owner: int) -> Path:
        directory = self.place / str(owner)
        directory.mkdir(0o700)
        archive = directory / "2026-01.tsv.gz"
        archive.write_bytes(gzip.compress(LINE.encode()))
        for path in (archive, directory):
            os.chown(path, owner, owner)
        return archive

    def unarchive(self, *archives: Path, prefix=()) -> subprocess.CompletedProcess:
        return subprocess.run([*prefix, "/usr/bin/python3", "-B", "-", *archives], input=PROGRAM.read_text(),
                              capture_output=True, text=True)

    def test_root_becomes_the_owner(self):
        archive = self.archive(OWNER)
        done = self.unarchive(archive)
        self.assertEqual((done.returncode, done.stderr, archive.exists()), (0, "", False))
        month = archive.parent / "2026-01"
        self.assertEqual([(path.stat().st_uid, path.stat().st_gid, oct(path.stat().st_mode & 0o777))
                          for path in (month, month / "a")], [(OWNER, OWNER, "0o700"), (OWNER, OWNER, "0o600")])

    def test_others_are_refused(self):
        archive = self.archive(OWNER)
        archive.parent.chmod(0o777)
        done = self.unarchive(archive, prefix=("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "--"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("belongs to another user", done.stderr)
        self.assertEqual(list(archive.parent.iterdir()), [archive])

    def test_archives_of_several_users_are_refused_before_anything_is_done(self):
        archives = [self.archive(OWNER), self.archive(OTHER)]
        done = self.unarchive(*archives)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("several users", done.stderr)
        for archive in archives:
            self.assertEqual(list(archive.parent.iterdir()), [archive])


if __name__ == "__main__":
    unittest.main()
