"""Changes a spool by hand as people do: with mv, cp, ln, touch and rm between any two directories, by mistake and on
purpose, and with an editor."""

import os
import time

from accounts import missed, read
from editors import Editors
from drops import Drops

# The number of files in failed at which it is emptied.
MOST_FAILED = 150
THINGS = ["directory", "full directory", "symlink", "link to a job", "fifo", "empty file", "junk", "unreadable name", "huge", "dot"]


class Hands(Drops):
    def tidy(self) -> None:
        """Empties directories that have become full."""
        failed = self.accounts.listed("failed")
        for name in self.chance.sample(failed, max(0, len(failed) - MOST_FAILED)):
            self.discard(self.accounts.place("failed", name))

    def discard(self, path: str) -> bool:
        """rm -r"""
        if os.path.isdir(path) and not os.path.islink(path):
            for name in os.listdir(path):
                self.discard(os.path.join(path, name))
            try:
                os.rmdir(path)
            except OSError as error:
                return missed(error)
            return True
        return self.accounts.remove(path)

    def move(self) -> None:
        """Moves between any two directories. The mistakes, cur and done, are rarer."""
        if (found := self.any(*self.chance.choices([("new", "cur", "partial", "hold", "failed"), ("done",)], [30, 1])[0])) is None:
            return
        state, name = found
        target = self.chance.choices(["new", "partial", "hold", "failed", "cur", "done", "tmp"], [8, 3, 8, 2, 0.7, 0.5, 0.3])[0]
        path = self.accounts.place(state, name)
        new_name = name
        if state == "cur" and self.chance.random() < 0.7:
            new_name = name.rpartition(":")[0] or name
        elif self.chance.random() < 0.05:
            new_name = self.chance.choice(["renamed-{}", f"{name}.bak", f"{name}:alpha.1.0a", "x\x01{}"]).format(name)
        if target == "tmp":
            # In cur, workers' files have the name of a claim.
            new_name = f"aside-{self.chance.randrange(10**9)}"
        if target in ("done", "tmp", "cur") or state == "done":
            self.accounts.spoil(self.accounts.token(path))
        self.count(f"mv {state} {target}", self.accounts.move(path, self.accounts.place(target, new_name)))

    def edit(self) -> None:
        if found := self.any(*self.chance.choices([("new", "partial", "hold", "failed"), ("cur",), ("done",)], [20, 2, 1])[0]):
            way = Editors(self.accounts, self.chance).edit(self.accounts.place(*found))
            self.count(f"edited by {way}" if way else "edited", way)

    def touch(self) -> None:
        if found := self.any("partial", "partial", "new", "hold", "cur", "failed"):
            # In new, a file with a time in the future is ignored.
            ahead = self.chance.choice([0, 0, 0, 5]) if found[0] == "partial" else 0
            self.count(f"touch {found[0]}", self.set_time(self.accounts.place(*found), time.time() + ahead))

    def remove(self) -> None:
        if found := self.any("new", "cur", "partial", "hold", "failed"):
            self.count(f"rm {found[0]}", self.discard(self.accounts.place(*found)))

    def drop_again(self) -> None:
        """Removes a running job or holds it, and drops another of its name at once."""
        if (found := self.any("cur")) is None or not (name := found[1].rpartition(":")[0]):
            return
        token, text = self.job(name)
        prepared = self.accounts.place("tmp", token)
        if self.accounts.create(prepared, text):
            claim = self.accounts.place(*found)
            if self.chance.random() < 0.7:
                self.count("rm cur, dropped again", self.discard(claim))
            else:
                self.count("mv cur hold, dropped again", self.accounts.move(claim, self.accounts.place("hold", name)))
            if not self.accounts.move(prepared, self.accounts.place("new", name)):
                self.accounts.remove(prepared)

    def copy(self) -> None:
        """cp, to another name or directory: makes a second job."""
        if found := self.any("new", "partial", "hold", "failed", "cur"):
            state, name = found
            if text := read(self.accounts.place(state, name)):
                suffix = self.chance.choice([".bak", "~", ".orig", ""])
                target = self.accounts.place(state if suffix else self.chance.choice(["new", "hold"]), name + suffix)
                if state == "cur" or "cur" in target:
                    self.accounts.spoil(self.accounts.token(self.accounts.place(state, name)))
                self.count("cp", self.accounts.create(target, text))

    def replace(self) -> None:
        """mv over another job, which is then gone."""
        if (source := self.any("new", "hold", "partial", "failed")) and (target := self.any("new", "hold", "failed")):
            self.count("mv over another", self.accounts.replace(self.accounts.place(*source), self.accounts.place(*target)))

    def glob(self) -> None:
        """mv partial/x* hold/, which also moves the data and editors' backups."""
        if (found := self.any("partial", "hold", "cur")) is None:
            return
        state, name = found
        stem = name.rpartition(":")[0] if state == "cur" else name
        source = "partial" if state == "cur" else state
        target = self.chance.choice(["hold", "new"]) if source == "partial" else self.chance.choice(["new", "partial"])
        is_done = False
        for other in sorted(os.listdir(self.spool / source)):
            if other.startswith(stem):
                is_done |= self.accounts.move(self.accounts.place(source, other), self.accounts.place(target, other))
        self.count(f"mv {source}/x* {target}", is_done)

    def link(self) -> None:
        if found := self.any("new", "hold", "partial", "cur", "done"):
            state, name = found
            target = self.chance.choice(["new", "hold", "partial"])
            if state in ("cur", "done"):
                self.accounts.spoil(self.accounts.token(self.accounts.place(state, name)))
            name = name if target != state else f"{name}-link"
            self.count(f"ln {state} {target}", self.accounts.link(self.accounts.place(*found), self.accounts.place(target, name)))

    def thing(self) -> None:
        """Puts files that are no jobs anywhere."""
        state = self.chance.choice(["new", "new", "new", "hold", "partial", "failed", "cur"])
        names = self.accounts.listed("new") + [f"thing-{self.chance.randrange(10**6)}"]
        path = self.accounts.place(state, self.chance.choice(names))
        kind = self.chance.choice(THINGS)
        try:
            if kind in ("directory", "full directory"):
                os.mkdir(path)
                if kind != "directory":
                    token = f"payload-{len(self.accounts.texts):06}"
                    text = self.text(token)
                    self.accounts.spoil(token)
                    self.accounts.create(os.path.join(path, "inner"), text)
            elif kind == "symlink":
                os.symlink(self.chance.choice(["nowhere", "/etc/passwd", ".", "..", path]), path)
            elif kind == "link to a job":
                if found := self.any("hold", "new", "partial"):
                    os.symlink(os.path.join("..", *found), path)
            elif kind == "fifo":
                os.mkfifo(path)
            else:
                content = {"empty file": b"", "junk": bytes(range(256)), "huge": b"# \n" * 30000, "dot": b"hidden\n", "unreadable name": b"\n"}[kind]
                if kind == "unreadable name":
                    path = self.accounts.place(state, f"\udc80\udcfe\x7f{self.chance.randrange(10**6)}")
                elif kind == "dot":
                    path = self.accounts.place(state, f".hidden-{self.chance.randrange(10**6)}")
                with open(path, "xb") as file:
                    file.write(content)
            self.accounts.note(f"  {kind}: {path}")
            self.count(f"dropped: {kind}", True)
        except OSError as error:
            missed(error)

    def take_data(self) -> None:
        """Removes the data of a job, which then starts over."""
        if found := sorted(name for name in os.listdir(self.spool / "partial") if name.endswith(".part")):
            path = self.accounts.place("partial", self.chance.choice(found))
            way = self.chance.choice(["rm", "mv"])
            try:
                if way == "rm":
                    os.unlink(path)
                else:
                    os.rename(path, self.accounts.place("hold", os.path.basename(path)))
                self.accounts.note(f"  {way} {path}")
                self.count(f"{way} of data", True)
            except OSError as error:
                missed(error)

    def append(self) -> None:
        """echo >> to a job that no worker writes to."""
        if (found := self.any("hold", "failed")) and (token := self.accounts.token(path := self.accounts.place(*found))):
            self.accounts.spoil(token)
            try:
                with open(path, "ab") as file:
                    file.write(self.chance.choice([b"# a note\n", b"attempts: 3\n", b"colour: red\n", b"no newline"]))
                self.count(">>", True)
            except OSError as error:
                missed(error)
