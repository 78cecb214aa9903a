"""Saves files as editors do, call by call, while a worker takes what is in `new`."""

import os
import random
import re
from collections.abc import Callable

from accounts import Accounts, missed, read

KEPT = (rb"output: payload-[0-9]*\n", rb"url: http://[^/\n]*/")


class Editors:
    def __init__(self, accounts: Accounts, chance: random.Random):
        self.accounts = accounts
        self.chance = chance
        self.ways: dict[str, Callable[[str, bytes, int], bool]] = {
            "vim, backup by rename": self.vim_rename,
            "vim, backup by copy": self.vim_copy,
            "nano": self.nano,
            "sed -i": self.sed,
            "emacs": self.emacs,
            "by a hidden file": self.hidden,
            "> in place": self.shell,
        }

    def edit(self, path: str) -> str | None:
        """Saves the job at `path` with one more comment. Returns how it was saved; nothing if there is no job to edit.
        """
        text = read(path)
        if text is None or (token := self.accounts.token(path)) is None:
            return None
        try:
            inode = os.lstat(path).st_ino
        except OSError as error:
            missed(error)
            return None
        # A person is responsible for changes of the journal; the job must not be lost all the same.
        if self.accounts.is_begun(path) or "/cur/" in path or "/done/" in path:
            self.accounts.spoil(token)
        head, _, rest = text.partition(b"\n")
        # Otherwise it would grow each time.
        rest = re.sub(rb"\A(# x*\n)+", b"", rest)
        text = head + b"\n# " + b"x" * self.chance.randrange(40) + b"\n" + rest
        if self.chance.random() < 0.02:
            # It is saved without its end.
            kept = max(found.end() for pattern in KEPT if (found := re.search(pattern, text)))
            text = text[: max(kept, len(text) - self.chance.randrange(1, 20))]
            self.accounts.spoil(token)
        way = self.chance.choice(list(self.ways))
        self.accounts.note(way)
        self.ways[way](path, text, inode)
        return way

    def beside(self, path: str, name: str) -> str:
        return os.path.join(os.path.dirname(path), name)

    def swap(self, path: str) -> str:
        return self.beside(path, f".{os.path.basename(path)}.swp")

    def vim_rename(self, path: str, text: bytes, inode: int) -> bool:
        swap, probe, backup = self.swap(path), self.beside(path, "4913"), path + "~"
        self.accounts.create(swap, b"b0VIM 9.0\0")
        self.accounts.create(probe, b"")
        self.accounts.remove(probe)
        # rename(2) replaces an older backup.
        if is_saved := self.accounts.replace(path, backup):
            self.accounts.create(path, text)
            self.accounts.remove(backup)
        self.accounts.remove(swap)
        return is_saved

    def vim_copy(self, path: str, text: bytes, inode: int) -> bool:
        backup = path + "~"
        if (before := read(path)) is None or not self.accounts.create(backup, before):
            return False
        is_saved = self.accounts.rewrite(path, text, inode)
        self.accounts.remove(backup)
        return is_saved

    def nano(self, path: str, text: bytes, inode: int) -> bool:
        swap = self.swap(path)
        self.accounts.create(swap, b"b0nano\0")
        is_saved = self.shell(path, text, inode)
        self.accounts.remove(swap)
        return is_saved

    def shell(self, path: str, text: bytes, inode: int) -> bool:
        return self.accounts.rewrite(path, text, inode)

    def sed(self, path: str, text: bytes, inode: int) -> bool:
        """The temporary file's name has no dot in front, so for a moment it is a job."""
        fresh = self.beside(path, "sed" + "".join(self.chance.choices("abcXYZ019", k=6)))
        return self.accounts.create(fresh, text) and self.accounts.replace(fresh, path)

    def hidden(self, path: str, text: bytes, inode: int) -> bool:
        fresh = self.beside(path, f".goutputstream-{self.chance.randrange(10**6)}")
        return self.accounts.create(fresh, text) and self.accounts.replace(fresh, path)

    def emacs(self, path: str, text: bytes, inode: int) -> bool:
        """Makes a lock that is a dangling link, a copy in between, and a backup that stays."""
        name = os.path.basename(path)
        lock, autosave = self.beside(path, f".#{name}"), self.beside(path, f"#{name}#")
        try:
            os.symlink("user@host.4242:1700000000", lock)
        except OSError as error:
            missed(error)
        self.accounts.create(autosave, text)
        if is_saved := self.accounts.move(path, path + "~"):
            self.accounts.create(path, text)
        self.accounts.remove(autosave)
        self.accounts.remove(lock)
        return is_saved
