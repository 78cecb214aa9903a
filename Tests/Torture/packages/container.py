"""Plays the steps of contrib/container/Containerfile in a root of its Debian, as a builder would, then its command."""

import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import origin
from machine import Root, base, run, wait

PORT = 8018


def steps(text: str) -> list[tuple[str, str]]:
    """The instructions, each with its arguments."""
    text = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def play(recipe: Path, context: Path, place: Path, cache: Path) -> str:
    root, user, environment, command = None, "0:0", {}, []
    for word, rest in steps(recipe.read_text()):
        if word == "FROM":
            suite = re.fullmatch(r"docker\.io/library/debian:(\w+)-slim", rest)[1]
            root = Root(base(suite, cache), place / "container")
        elif word == "COPY":
            *names, to = rest.split()
            for file in [file for name in names for file in context.glob(name)]:
                shutil.copy(file, root.path / to.lstrip("/"))
        elif word == "RUN":
            root.chroot("sh", "-c", rest)
        elif word == "USER":
            user = rest
        elif word == "ENV":
            environment.update(part.split("=", 1) for part in shlex.split(rest))
        elif word == "ENTRYPOINT":
            command = json.loads(rest)
        else:
            assert word == "VOLUME", f"nobody plays {word}"
    server = subprocess.Popen([sys.executable, "-B", origin.__file__, str(PORT)], stdout=subprocess.DEVNULL)
    try:
        wait("the server listens", lambda: socket.socket().connect_ex(("127.0.0.1", PORT)) == 0)
        spoolrun = ["chroot", f"--userspec={user}", str(root.path), "env", "-i", "PATH=/usr/bin:/bin",
                    *(f"{key}={value}" for key, value in environment.items()), *command]
        run([*spoolrun, "add", f"http://127.0.0.1:{PORT}/file?size=1000000"])
        begun = time.monotonic()
        run([*spoolrun, "--once"])
        seconds = time.monotonic() - begun
    finally:
        server.kill()
        server.wait()
    payload = root.path / environment["SPOOLRUN_SPOOL"].lstrip("/") / "files/file"
    assert payload.read_bytes() == origin.payload("/file", 1000000)
    size = sum(file.lstat().st_blocks * 512 for file in root.path.rglob("*") if not file.is_symlink())
    return f"done as {user} in {seconds:.1f} s, {size >> 20} MiB with the suite's base"
