"""Drops jobs in several ways, under names as people and programs give them."""

import os
import time
import zlib

from accounts import STATES, Text, is_no_name, missed
from stage import CHANGING, FIXED, Stage

# `\udcff` stands for a byte that is not UTF-8.
NAMES = ["job-{}", "job-{}", "job-{}", "job-{}.torrent", "größe {}", 'a "b" \\{}', "latin-\udcff-{}"]
NAMES += ["-dash-{}", "colon:{}", "a:b.{}.c", "tilde~{}", "*{}?", "{}"]
STRANGE_NAMES = ["new\nline-{}", "esc\x1b[31m-{}", "tab\t{}", "{}.part", "x" * 190 + "{}", "{}.record", "\u202e{}"]
# The number of open jobs from which on nothing is dropped.
MOST_LIVING = 150


class Drops(Stage):
    def drop(self) -> None:
        if sum(len(self.accounts.listed(state)) for state in STATES if state not in ("done", "failed")) >= MOST_LIVING:
            return self.count("dropped", False)
        number = len(self.accounts.texts)
        is_strange = self.chance.random() < 0.02
        name = self.chance.choice(STRANGE_NAMES if is_strange else NAMES).format(number)
        if self.chance.random() < 0.05:
            # Another job's name, or one with a number.
            name = f"job-{self.chance.randrange(max(1, number - 30), number + 1)}{self.chance.choice(['', '~2', '~2~2'])}"
        token, text = self.job(name)
        target = self.accounts.place("new", name)
        way = self.chance.choices(["rename", "cp", "> in pieces", "add", "cp -p of an old one"], [6, 3, 3, 0 if is_strange else 1, 1])[0]
        if way == "rename":
            temporary = self.accounts.place("tmp", token)
            is_done = self.accounts.create(temporary, text) and self.accounts.move(temporary, target)
            if not is_done and os.path.exists(temporary):
                self.accounts.remove(temporary)
        elif way == "add":
            is_done = self.add(token, name, text)
        elif way == "> in pieces":
            is_done = self.begin_writing(token, target, text)
        else:
            is_done = self.accounts.create(target, text)
            if is_done and way != "cp":
                self.set_time(target, time.time() - self.chance.randrange(10**6))
        self.count(f"dropped by {way}", is_done)

    def job(self, name: str) -> tuple[str, bytes]:
        """A new job's token and text, noted under this name."""
        token = f"payload-{len(self.accounts.texts):06}"
        text = self.text(token)
        if is_no_name(name):
            self.accounts.spoil(token)
        self.accounts.by_name[name].add(token)
        return token, text

    def text(self, token: str) -> bytes:
        file = self.chance.choice(FIXED + CHANGING)
        is_declared = file in FIXED and self.chance.random() < 0.6
        lines = [f"output: {token}", f"url: {self.server.url(file)}"]
        if is_declared:
            content = self.server.content(file, 0)
            lines += [f"size: {len(content)}", f"crc32: {zlib.crc32(content):08X}"]
        if self.chance.random() < 0.2:
            lines.append("connections: 4")
        self.accounts.texts[token] = Text(file, 0 if is_declared else None)
        return "".join(f"{line}\n" for line in lines).encode()

    def begin_writing(self, token: str, target: str, text: bytes) -> bool:
        """Writes the first line first, and the rest while a worker looks."""
        try:
            descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            return missed(error)
        first = self.chance.randrange(text.index(b"\n") + 1, len(text))
        os.write(descriptor, text[:first])
        self.accounts.add(token, target)
        self.writing.append((descriptor, text[first:], time.monotonic() + self.chance.uniform(0, 1)))
        return True

    def go_on_writing(self, is_last: bool = False) -> None:
        for item in [item for item in self.writing if is_last or item[2] <= time.monotonic()]:
            self.writing.remove(item)
            os.write(item[0], item[1])
            os.close(item[0])

    def add(self, token: str, name: str, text: bytes) -> bool:
        options = dict(line.split(": ", 1) for line in text.decode().splitlines())
        url = options.pop("url")
        words = [f"--{key}={value}" for key, value in options.items()]
        status, said = self.ask("add", f"--name={name}", *words, url)
        if status == 0:
            self.accounts.add(token, self.accounts.place("new", said.strip()))
            self.accounts.by_name[name].add(token)
        return status == 0
