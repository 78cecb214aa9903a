"""Tests contrib/unarchive: `python3 -B Tests/Contrib/unarchive.py`."""

import ctypes
import gzip
import os
import runpy
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

PROGRAM = Path(__file__).resolve().parents[2] / "contrib/unarchive"


class UnarchiveTests(unittest.TestCase):
    def setUp(self):
        self.place = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.archive = self.place / "2026-01.tsv.gz"
        line = "2026-01-01T00:00:00Z\ta\t-\t-\t-\t-\t2026-01-01T00:00:00Z\turl: http://h/a\\n\n"
        self.archive.write_bytes(gzip.compress(line.encode()))
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


if __name__ == "__main__":
    unittest.main()
