"""The jobs of a spool as aria2 would tell of them, and the commands that change them."""

from __future__ import annotations

import ctypes
import errno
import functools
import hashlib
import os
import re
import stat
import subprocess
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import unquote

MAXIMUM_TEXT = 4 << 20
# spool(5), JOB FORMAT.
MAXIMUM_REQUEST = 64 << 10
# The order counts: of several jobs of one name, the first is the one that its GID means.
FOLDERS = {"cur": "active", "urgent": "waiting", "new": "waiting", "partial": "waiting", "hold": "paused",
           "failed": "error", "done": "complete"}
WAITING = ["urgent", "new", "partial", "hold"]
STOPPED = ["failed", "done"]
DIGESTS = {"sha-256": "sha256", "sha-512": "sha512", "sha-1": "sha1", "md5": "md5"}
# Of spool(5), FAILURE CODES, those of aria2c(1), EXIT STATUS.
CODES = {"timeout": 2, "http-404": 3, "http-410": 3, "unresolvable": 3, "stalled": 5, "no-network": 6, "connect": 6,
         "disk-full": 9, "output-exists": 13, "bad-output": 16, "io": 17, "resolve": 19, "http-401": 24,
         "malformed": 28, "http-503": 29}
# spool(5), JOURNAL.
JOURNAL = {b"requeued", b"urgent", b"relinked", b"started", b"response", b"checkpoint", b"cleared", b"interrupted",
           b"failed", b"verified", b"published", b"done", b"checked", b"seen"}
# The lines that are kept of a job, which may be a stranger's: those of the journal, and those of the request.
TOLD = {b"started", b"response", b"verified", b"failed", b"done"}
KEYS = {b"url", b"output", b"root", b"size", b"connections", b"every", *(key.encode() for key in DIGESTS.values())}
FIELD = re.compile(rb'([a-z0-9-]+)=("(?:[^"\\]|\\.)*"|\S*)')
# By such a line a job is from a signed list. It counts only in a file of the user whose workers write the journals.
SIGNED = re.compile(rb"^[^#]*# signed by ")
ESCAPE = re.compile(rb'\\(x[0-9a-fA-F]{2}|.)')
renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


class Refused(Exception):
    """An error for the client. The codes are those of aria2 and of JSON-RPC 2.0."""

    def __init__(self, message: str, code: int = 1):
        super().__init__(message)
        self.code = code


def move(old: bytes, new: bytes) -> None:
    """Renames, and replaces nothing (rename(2), RENAME_NOREPLACE)."""
    if renameat2:
        if renameat2(-100, old, -100, new, 1) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(number, os.strerror(number), os.fsdecode(new))
    os.link(old, new)
    os.unlink(old)


@functools.lru_cache(maxsize=300_000)
def gid_of(name: bytes) -> str:
    """Of the name, which is a job's own in all states; so it stays the same."""
    return hashlib.sha256(name).hexdigest()[:16]


def shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def public(url: str) -> str:
    """A URL without user name, password, query and fragment, as everything else shows it."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*://)(?:[^/?#]*@)?([^?#]*)", url)
    return found[1] + found[2] if found else ""


def fields(value: bytes) -> dict[str, str]:
    """The fields of a journal line."""
    def plain(found: re.Match) -> bytes:
        return bytes.fromhex(found[1][1:].decode()) if len(found[1]) == 3 else found[1]
    return {key.decode(): shown(ESCAPE.sub(plain, text[1:-1]) if text.startswith(b'"') else text)
            for key, text in FIELD.findall(value)}


def entry(line: bytes) -> tuple[bytes, bytes]:
    """The key and the value of a job's line, as a worker reads it; `url` for a bare URL."""
    line = line.removesuffix(b"\r").lstrip(b"\xef\xbb\xbf \t").rstrip(b" \t")
    key, colon, value = line.partition(b":")
    if not colon or key.startswith(b"#"):
        return b"", b""
    return (b"url", line) if value.startswith(b"//") else (key, value.lstrip(b" \t"))


class Job:
    """A job as its file was at a moment."""

    def __init__(self, spool: "Spool", folder: str, name: bytes, file: bytes, status: os.stat_result):
        self.spool, self.folder, self.name, self.file, self.status = spool, folder, name, file, status
        self.stamp = None
        self.keys: dict[str, list[str]] = {}
        self.journal: dict[str, dict[str, str]] = {}

    @property
    def gid(self) -> str:
        return gid_of(self.name)

    def read(self) -> None:
        """Reads the text, unless the file is what it was."""
        self.status = os.lstat(self.spool.path(self.folder, self.file))
        stamp = self.status.st_ino, self.status.st_size, self.status.st_mtime_ns, self.status.st_ctime_ns
        if stamp == self.stamp:
            return
        self.stamp, self.keys, self.journal = stamp, {}, {}
        text, believed = self.contents()
        for line in text.split(b"\n"):
            key, value = entry(line)
            if key in KEYS and value:
                self.keys.setdefault(key.decode(), []).append(shown(value))
            elif believed and key in TOLD:
                self.journal[key.decode()] = fields(value) | {"time": shown(value.split(b" ")[0])}
                if key == b"started":
                    self.journal.pop("failed", None)

    def contents(self) -> tuple[bytes, bool]:
        """The text, and whether its journal is believed: one that another user has written is not."""
        path = self.spool.path(self.folder, self.file)
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            believed = status.st_uid == self.spool.owner
            # Its owner may have put something else in its place.
            most = 0 if not stat.S_ISREG(status.st_mode) else MAXIMUM_TEXT if believed else MAXIMUM_REQUEST + 1
            return file.read(most), believed

    def request(self) -> bytes:
        """The text without the journal, nor what only its owner may say, and without a line that has no end."""
        text, believed = self.contents()
        lines = [line for line in text.split(b"\n")[:-1]
                 if entry(line)[0] not in JOURNAL and (believed or not SIGNED.search(line))]
        request = b"\n".join([*lines, b""])
        if len(request if believed else text) > MAXIMUM_REQUEST:
            raise Refused(f"{shown(self.name)} has more than 64 KiB")
        return request

    @property
    def is_order(self) -> bool:
        return "every" in self.keys

    @property
    def urls(self) -> list[str]:
        return [public(url) for url in self.keys.get("url", [])]

    @property
    def output(self) -> str:
        said = self.journal.get("done", {}).get("output") or self.keys.get("output", [""])[0]
        if said and not said.endswith("/"):
            return said
        last = unquote(self.urls[0].rstrip("/").rpartition("/")[2]) if self.urls else ""
        return said + (last.rpartition("/")[2] or shown(self.name))

    @property
    def directory(self) -> str:
        if "directory" in self.journal.get("done", {}):
            return self.journal["done"]["directory"]
        return self.spool.directory(self.keys.get("root", [None])[0])

    @property
    def path(self) -> str:
        return os.path.join(self.directory, self.output)

    def lengths(self) -> tuple[int, int]:
        """The size so far, and in all; 0 if that is not known."""
        verified = self.journal.get("verified", {}).get("size")
        said = verified or self.journal.get("response", {}).get("size") or self.keys.get("size", ["0"])[0]
        # A job that is wrong may say anything.
        total = int(said) if re.fullmatch("[0-9]{1,19}", said) else 0
        if self.folder == "done":
            return total, total
        try:
            return os.stat(self.spool.path("partial", self.name + b".part")).st_size, total
        except OSError:
            return 0, total

    def tell(self, wanted: list[str] | None = None) -> dict:
        if wanted is not None and not isinstance(wanted, list):
            raise Refused("The keys are no array.", -32602)
        done, total = self.lengths()
        complete = self.folder == "done"
        status = {
            "gid": self.gid, "status": FOLDERS[self.folder], "dir": self.directory, "totalLength": str(total),
            "completedLength": str(done), "uploadLength": "0", "uploadSpeed": "0",
            "downloadSpeed": str(self.spool.rate(self, done)), "connections": "1" if self.folder == "cur" else "0",
            "numPieces": "1", "pieceLength": str(total), "bitfield": "80" if complete else "00",
            "files": [{"index": "1", "path": self.path, "length": str(total), "completedLength": str(done),
                       "selected": "true", "uris": [{"uri": url, "status": "used"} for url in self.urls]}],
        }
        failure = self.journal.get("failed")
        if complete:
            status["errorCode"] = "0"
            status["errorMessage"] = ""
        elif failure and self.folder != "cur":
            code = failure.get("code", "")
            status["errorCode"] = str(CODES.get(code, 1))
            status["errorMessage"] = f"{code}: {failure.get('reason', '')}"
        return {key: value for key, value in status.items() if not wanted or key in wanted}

    def options(self) -> dict[str, str]:
        """Without what may be secret, such as header fields."""
        options = {"dir": self.directory, "out": self.output, "split": self.keys.get("connections", ["1"])[0]}
        for name, key in DIGESTS.items():
            if key in self.keys:
                options["checksum"] = f"{name}={self.keys[key][0]}"
        return options


class Spool:
    """The files of a spool, and the commands that change it."""

    def __init__(self, root: str, program: str, directory: str | None):
        self.root = os.path.abspath(root)
        self.program, self.output_root = program, directory
        self.owner = os.stat(self.root).st_uid
        if self.owner != os.geteuid():
            raise Refused(f"{root} belongs to another user; run this as that one")
        self.listings: dict[str, tuple[int, list[Job]]] = {}
        self.rates: dict[str, tuple[float, int, int]] = {}
        self.removed: dict[str, dict] = {}

    def path(self, folder: str, name: bytes) -> bytes:
        return os.path.join(os.fsencode(self.root), folder.encode(), name)

    def directory(self, root: str | None = None) -> str:
        """The output directory."""
        if root and re.fullmatch(r"[^/\0]+", root) and root != "..":
            return os.path.realpath(os.path.join(self.root, "roots", root))
        own = self.output_root or self.worker().get("directory")
        return os.path.realpath(own or os.path.join(self.root, "files"))

    def worker(self) -> dict[str, str]:
        """The options of the worker that started last."""
        try:
            files = sorted(Path(self.root, "workers").iterdir(), key=lambda file: file.stat().st_mtime)
            return fields(next(line for line in files[-1].read_bytes().split(b"\n") if line.startswith(b"options: ")))
        except (OSError, IndexError, StopIteration):
            return {}

    def run(self, *words: str | bytes, text: bytes = b"") -> str:
        result = subprocess.run([self.program, *words], input=text, capture_output=True, check=False,
                                timeout=60)
        if result.returncode != 0:
            said = result.stderr.decode("utf-8", "backslashreplace").splitlines() or [f"status {result.returncode}"]
            reason = re.sub(r"^(spoolrun|Error): (standard input:\d+: )?", "", said[0])
            raise Refused(re.sub(r"; (--ignore-unknown leaves it out; )?nothing is dropped$", "", reason))
        return result.stdout.decode("utf-8", "backslashreplace")

    # Reading.

    def listing(self, folder: str) -> list[Job]:
        """The jobs of a directory, by their times. Their texts are not read yet."""
        status = os.stat(self.path(folder, b""))
        known = self.listings.get(folder)
        if known and known[0] == status.st_mtime_ns:
            return known[1]
        old = {job.file: job for job in known[1]} if known else {}
        jobs = []
        with os.scandir(self.path(folder, b"")) as entries:
            for entry in entries:
                name = entry.name.rpartition(b":")[0] if folder == "cur" else entry.name
                if not name or name.startswith(b".") or name.endswith(b".part"):
                    continue
                job = old.get(entry.name)
                if not job or job.status.st_ino != entry.inode():
                    try:
                        job = Job(self, folder, name, entry.name, entry.stat(follow_symlinks=False))
                    except FileNotFoundError:
                        continue
                if stat.S_ISREG(job.status.st_mode) and not self.is_record(job):
                    jobs.append(job)
        jobs.sort(key=lambda job: job.status.st_mtime_ns)
        # A change within the clock's grain would leave the directory's time as it is.
        settled = time.time_ns() - status.st_mtime_ns > 1_000_000_000
        self.listings[folder] = (status.st_mtime_ns if settled else 0, jobs)
        return jobs

    def is_record(self, job: Job) -> bool:
        """Whether it is what a worker writes beside something that is no job: one line that says why."""
        if job.folder != "failed" or not job.name.endswith(b".record"):
            return False
        try:
            # Something else may have the name by now.
            file = os.open(self.path(job.folder, job.name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(file, "rb") as record:
                lines = record.read(65537).split(b"\n")
        except OSError:
            return False
        return len(lines) == 2 and not lines[1] and lines[0].startswith(b"failed: ")

    def text(self, job: Job) -> Job | None:
        """The job with its text; nothing if it has moved, or is a subscription."""
        try:
            job.read()
        except FileNotFoundError:
            return None
        except PermissionError:
            pass
        return None if job.is_order else job

    def jobs(self, folders: list[str]) -> list[Job]:
        """Subscriptions can be in two of these directories."""
        return [job for folder in folders for job in self.listing(folder)
                if folder not in ("hold", "failed") or self.text(job)]

    def stopped(self) -> list[Job]:
        """The jobs that have ended; none whose name, and so its GID, another one has by now."""
        meant = {job.name: job for job in reversed(self.jobs([*FOLDERS]))}
        return [job for job in meant.values() if job.folder in STOPPED]

    def find(self, gid: str, folders=FOLDERS) -> Job:
        if not isinstance(gid, str):
            raise Refused("The GID is no text.", -32602)
        # A job that moves while the directories are read may be missed.
        for _ in range(3):
            for folder in folders:
                for job in self.listing(folder):
                    if job.gid == gid and (found := self.text(job)):
                        return found
            time.sleep(0.05)
        raise Refused(f"GID {gid} is not found")

    def rate(self, job: Job, size: int) -> int:
        """By how much the data has grown a second, since an earlier look."""
        if job.folder != "cur":
            self.rates.pop(job.gid, None)
            return 0
        now = time.monotonic()
        then, before, rate = self.rates.get(job.gid, (now, size, 0))
        if now - then >= 0.8:
            rate = max(0, int((size - before) / (now - then)))
            self.rates[job.gid] = (now, size, rate)
        elif job.gid not in self.rates:
            self.rates[job.gid] = (now, size, 0)
        return rate

    # Changing.

    def checked(self, text: bytes, *words: str) -> list[tuple[bytes, bytes]]:
        """The names and texts of the jobs that `spoolrun add` makes of this, in a spool that nobody works on."""
        with tempfile.TemporaryDirectory(prefix="aria2-rpc.") as scratch:
            self.run("init", "--spool", scratch)
            try:
                Path(scratch, "protocols").write_bytes(Path(self.root, "protocols").read_bytes())
            except FileNotFoundError:
                pass
            self.run("add", "--spool", scratch, "--from", "-", *words, text=text)
            paths = sorted(path for folder in ("urgent", "new") for path in Path(scratch, folder).iterdir())
            jobs = [(os.fsencode(path.name), path.read_bytes()) for path in paths]
        if not jobs:
            raise Refused("there is nothing to download")
        return jobs

    def drop(self, name: bytes, text: bytes, folder: str) -> str:
        """Puts a job into `new`, or into `hold`, under its name or another that is free."""
        if not text.endswith(b"# complete\n"):
            text += b"# complete\n"
        draft = self.path("tmp", b"aria2-rpc.%d" % os.getpid())
        # So that nothing is left of a call that was cut.
        Path(os.fsdecode(draft)).unlink(missing_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        stem = re.sub(rb"~[0-9]{1,9}$", b"", name)[:170].decode("utf-8", "ignore").encode()
        number = 1
        while True:
            taken = any(os.path.lexists(self.path(each, name)) for each in [*FOLDERS, "standing"])
            if not taken and all(job.name != name for job in self.listing("cur")):
                try:
                    move(draft, self.path(folder, name))
                    break
                except FileExistsError:
                    pass
            number += 1
            name = stem + b"~%d" % number
        descriptor = os.open(self.path(folder, b""), os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        return gid_of(name)

    def steer(self, gid: str, command: str, folders: list[str], refusal: str) -> Job:
        """Runs a command on a job that is in one of these directories."""
        for turn in range(3):
            job = self.find(gid)
            if job.folder not in folders:
                raise Refused(refusal)
            try:
                self.run(command, "--spool", self.root, "--", job.folder.encode() + b"/" + job.name)
                return job
            except Refused:
                # It may have moved meanwhile.
                if turn == 2:
                    raise
        raise Refused(refusal)

    def steer_all(self, command: str, folders: list[str]) -> str:
        """Runs a command on all jobs of these directories. `--all` would mean subscriptions, too."""
        for turn in range(3):
            # A subscription is in `cur` while it is checked.
            names = [
                job.folder.encode() + b"/" + job.name for job in self.jobs(folders) if job.folder != "cur" or self.text(job)
            ]
            refusal = None
            # A command line has an end.
            for start in range(0, len(names), 500):
                try:
                    self.run(command, "--spool", self.root, "--", *names[start:start + 500])
                except Refused as error:
                    # Some may have moved meanwhile.
                    refusal = error
            if not refusal:
                return "OK"
        raise refusal

    def archive(self, job: Job) -> None:
        """Moves a receipt to where `spoolrun clean --archive` moves it: nothing is lost."""
        written = job.journal.get("done", {}).get("time", "")
        month = written[:7] if re.match(r"\d{4}-\d\d-", written) else datetime.now(timezone.utc).strftime("%Y-%m")
        for number in range(1, 1000):
            place = self.path("done/archive", (month if number == 1 else f"{month}~{number}").encode())
            try:
                os.makedirs(place, mode=0o700, exist_ok=True)
            except (FileExistsError, NotADirectoryError):
                raise Refused("done/archive is a receipt: `spoolrun clean --archive` gives it another name")
            try:
                return move(self.path("done", job.name), os.path.join(place, job.name))
            except FileExistsError:
                continue
