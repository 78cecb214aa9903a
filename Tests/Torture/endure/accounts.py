"""Counts the files with each job's text, whatever happens to them. A worker moves and copies jobs, but neither adds nor
removes one, so each change of the count is made here."""

import ctypes
import errno
import os
import re
import stat
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

STATES = ("new", "cur", "partial", "hold", "failed", "done")
# Errors that a busy spool may cause: the file has moved, something else has its name, it is no file.
WAYS = {errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.EPERM}
LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, RENAME_NOREPLACE = -100, 1
# A job's token is its output, which one of its first lines has.
TOKEN = re.compile(rb"^output: (payload-\d{6})\n", re.MULTILINE)
HEAD = 1024
CLAIM = re.compile(r":[^:]*\.[0-9]+\.[0-9a-f]{8}$")


@dataclass
class Text:
    # The server that has the file.
    file: str
    # The only version that is right; None for any.
    version: int | None
    # The expected number of files.
    files: int = 0
    # Fewer may be right: several names of one file, or a command that may have changed another job of the name.
    is_uncertain: bool = False
    # Because of what a person did, it may be no valid job any more, or be where no worker looks.
    is_spoiled: bool = False


@dataclass
class Accounts:
    spool: Path
    diary: IO[str]
    texts: dict[str, Text] = field(default_factory=dict)
    # The jobs that had a name, without numbers and suffixes.
    by_name: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def note(self, what: str) -> None:
        self.diary.write(what.encode(errors="backslashreplace").decode().replace("\n", "\\n") + "\n")

    # MARK: places

    def listed(self, state: str) -> list[str]:
        """Sorted, so that a seed always chooses the same. Without hidden files, data and records."""
        return sorted(name for name in os.listdir(self.spool / state) if not name.startswith(".") and not name.endswith((".part", ".record")))

    def place(self, state: str, name: str) -> str:
        return os.path.join(self.spool, state, name)

    def token(self, path: str) -> str | None:
        descriptor = opened(path)
        if descriptor is None:
            return None
        try:
            return token_of(descriptor)
        finally:
            os.close(descriptor)

    def is_begun(self, path: str) -> bool:
        """Whether a worker has written to it."""
        return b"\nstarted: " in (read(path) or b"")

    def spoil(self, token: str | None) -> None:
        if token:
            self.texts[token].is_spoiled = True

    # MARK: changes

    def add(self, token: str | None, path: str) -> None:
        """Counts one more file of it."""
        if token:
            self.texts[token].files += 1
            self.by_name[bare(path)].add(token)
        self.note(f"  + {path} {token}")

    def create(self, path: str, text: bytes) -> bool:
        """Like a shell's `>` with noclobber."""
        try:
            descriptor = opened_to_write(path, os.O_EXCL)
        except OSError as error:
            return missed(error)
        os.write(descriptor, text)
        os.close(descriptor)
        self.add(token_in(text), path)
        return True

    def remove(self, path: str) -> bool:
        """Like rm."""
        try:
            with KeptOpen(path) as kept:
                os.unlink(path)
                self.note(f"  - {path} {kept.token}")
                self.has_gone(kept, path)
        except OSError as error:
            return missed(error)
        return True

    def has_gone(self, kept: "KeptOpen", path: str) -> None:
        """`path` was this file when it was opened, and has been removed since."""
        if kept.has_lost_a_name():
            if kept.token:
                self.texts[kept.token].files -= 1
        elif kept.is_open():
            # A worker had moved the file before, so another file was removed.
            self.note(f"  ? {path}")
            self.doubt(path)

    def doubt(self, path: str) -> None:
        for token in self.by_name[bare(path)]:
            self.texts[token].is_uncertain = True

    def move(self, source: str, target: str) -> bool:
        """Like mv -n."""
        token = self.token(source)
        if LIBC.renameat2(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), RENAME_NOREPLACE) != 0:
            return missed(OSError(ctypes.get_errno(), target))
        self.follow(token, source, target)
        return True

    def replace(self, source: str, target: str) -> bool:
        """Like mv, which replaces what has the name."""
        token = self.token(source)
        try:
            with KeptOpen(target) as kept:
                os.rename(source, target)
                self.follow(token, source, target)
                if kept.has_lost_a_name() and kept.token:
                    self.texts[kept.token].files -= 1
                    self.note(f"  - {target} {kept.token}, replaced")
        except OSError as error:
            return missed(error)
        return True

    def follow(self, token: str | None, source: str, target: str) -> None:
        self.note(f"  {source} -> {target} {token}")
        if token:
            self.by_name[bare(target)].add(token)
            if is_no_name(target):
                self.spoil(token)

    def link(self, source: str, target: str) -> bool:
        # Before the move, because a worker may take it right after.
        token = self.token(source)
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError as error:
            return missed(error)
        self.add(token, target)
        if token:
            self.texts[token].is_uncertain = True
        return True

    def rewrite(self, path: str, text: bytes, inode: int) -> bool:
        """Writes in place, truncating first, as editors do that keep the inode. `inode`: that of the file that was
        read. If it has moved, a new file is made."""
        try:
            descriptor = opened_to_write(path, os.O_TRUNC)
        except OSError as error:
            return missed(error)
        is_same = os.fstat(descriptor).st_ino == inode
        os.write(descriptor, text)
        os.close(descriptor)
        self.note(f"  = {path} {token_in(text)}{'' if is_same else ', anew'}")
        if not is_same:
            self.add(token_in(text), path)
        return True

    # MARK: the end

    def instances(self) -> defaultdict[str, list[str]]:
        """All files with a job's text, by its token; but not a copy in tmp that a killed worker left."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for state in ("tmp", *STATES):
            for directory, _, names in os.walk(self.spool / state):
                for name in names:
                    path = os.path.join(directory, name)
                    if (token := self.token(path)) and not (state == "tmp" and CLAIM.search(name)):
                        found[token].append(os.path.relpath(path, self.spool))
        return found


class KeptOpen:
    """Keeps the file at `path` open, to see afterwards whether it has lost a name. There may be no file."""

    def __init__(self, path: str):
        self.descriptor = opened(path)
        self.token: str | None = None
        self.links = 0

    def __enter__(self) -> "KeptOpen":
        if self.descriptor is not None:
            try:
                self.token, self.links = token_of(self.descriptor), os.fstat(self.descriptor).st_nlink
            except OSError:
                os.close(self.descriptor)
                raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)

    def is_open(self) -> bool:
        return self.descriptor is not None

    def has_lost_a_name(self) -> bool:
        return self.descriptor is not None and os.fstat(self.descriptor).st_nlink < self.links


def opened(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        missed(error)
        return None


def opened_to_write(path: str, flag: int) -> int:
    """Waits neither for the reader of a pipe, nor long for a worker's lease, which is short."""
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | flag | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        except BlockingIOError:
            time.sleep(0.001)


def token_of(descriptor: int) -> str | None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return None
    return token_in(os.pread(descriptor, HEAD, 0))


def token_in(text: bytes) -> str | None:
    found = TOKEN.search(text[:HEAD])
    return found and found[1].decode()


def read(path: str) -> bytes | None:
    descriptor = opened(path)
    if descriptor is None:
        return None
    try:
        return os.pread(descriptor, 1 << 20, 0) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    finally:
        os.close(descriptor)


def missed(error: OSError) -> bool:
    """Returns False; raises any error that a busy spool does not cause."""
    if error.errno not in WAYS:
        raise error
    return False


def bare(path: str) -> str:
    """A job's name without what moves and editors add to it."""
    name = re.sub(r":[^:]*\.[0-9]+\.[0-9a-z]+$", "", os.path.basename(path))
    return re.sub(r"(~[0-9]*|\.bak|\.orig|#)+$", "", name.lstrip("#"))


def is_no_name(path: str) -> bool:
    name = os.fsencode(os.path.basename(path))
    return len(name) > 170 or name.endswith(b".part") or any(byte < 0x20 or byte == 0x7F for byte in name)
