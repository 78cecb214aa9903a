"""The methods of aria2 (aria2c(1), RPC INTERFACE), and what their options are in a job."""

from __future__ import annotations

import base64
import binascii
import contextlib
import hmac
import os
import re
import secrets
import subprocess
import threading
import traceback
from urllib.parse import quote

from jobs import DIGESTS, FOLDERS, WAITING, Job, Refused, Spool

MAXIMUM_CALLS = 1000
# Header fields of the browser's own connection, which the worker has no use for.
CONNECTION_FIELDS = {"accept-encoding", "connection", "content-length", "keep-alive", "te", "upgrade"}
# They would change what is fetched, or with what, and a job cannot say it.
REFUSED = ["gid", "all-proxy", "http-proxy", "https-proxy", "ftp-proxy", "load-cookies", "certificate", "private-key",
           "ftp-user", "ftp-passwd"]
# The same for the jobs of a metalink.
REFUSED_WITH_METALINK = ["header", "referer", "user-agent", "http-user", "http-passwd", "max-download-limit"]


def option(options: dict, name: str) -> str:
    value = options.get(name, "")
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (str, int, float)):
        raise Refused(f"option {name}: is no text")
    return plain(str(value).strip(), f"option {name}")


def plain(text, what: str) -> str:
    """A line break would be another line of the job."""
    if not isinstance(text, str) or re.search(r"[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]", text):
        raise Refused(f"{what}: has control characters, or is no text")
    return text


def place(spool: Spool, options: dict) -> tuple[str | None, str]:
    """The root and the directory below it that `dir` means. It never leaves an output directory."""
    wanted = option(options, "dir")
    if not wanted:
        return None, ""
    roots = [None]
    if os.path.isdir(os.path.join(spool.root, "roots")):
        roots += sorted(os.listdir(os.path.join(spool.root, "roots")))
    parts = wanted.split("/")
    if ".." not in parts and not wanted.startswith("~"):
        if not wanted.startswith("/"):
            return None, "/".join(part for part in parts if part not in ("", "."))
        for root in roots:
            below = os.path.relpath(os.path.realpath(wanted), spool.directory(root))
            if below == ".":
                return root, ""
            if not below.startswith("../") and below != "..":
                return root, plain(below, "option dir")
    raise Refused(f"option dir: {wanted} is not below {spool.directory()}, nor a directory in roots of the spool")


def refuse(options: dict) -> None:
    for name in REFUSED:
        if option(options, name):
            raise Refused(f"option {name}: is not for clients; see `defaults` in spool(5)")


def job_lines(spool: Spool, urls: list, options: dict) -> list[str]:
    """The text of a job for these options, but for its output."""
    refuse(options)
    login = option(options, "http-user"), option(options, "http-passwd")
    lines = []
    for url in urls:
        url = plain(url, "the URL").strip().replace(" ", "%20")
        scheme, mark, rest = url.partition("://")
        if any(login) and scheme.lower() in ("http", "https") and "@" not in re.split("[/?#]", rest)[0]:
            url = f"{scheme}{mark}{quote(login[0], safe='')}:{quote(login[1], safe='')}@{rest}"
        lines.append(f"url: {url}")
    headers = options.get("header", [])
    if not isinstance(headers, (str, list)):
        raise Refused("option header: is no array")
    for header in headers.split("\n") if isinstance(headers, str) else headers:
        header = plain(header, "option header").strip()
        if header and header.partition(":")[0].strip().lower() not in CONNECTION_FIELDS:
            lines.append(f"header: {header}")
    # Not `*`, nor a page that is of no server, such as about:blank.
    if re.match("https?://.", referer := option(options, "referer"), re.IGNORECASE):
        lines.append(f"referer: {referer}")
    if agent := option(options, "user-agent"):
        lines.append(f"user-agent: {agent}")
    if checksum := option(options, "checksum"):
        name, _, digest = checksum.partition("=")
        if name.lower() not in DIGESTS:
            raise Refused(f"option checksum: {name} is none of {', '.join(DIGESTS)}")
        lines.append(f"{DIGESTS[name.lower()]}: {digest}")
    if (rate := option(options, "max-download-limit")) not in ("", "0"):
        lines.append(f"limit-rate: {rate}")
    if connections := option(options, "max-connection-per-server") or option(options, "split"):
        lines.append(f"connections: {min(32, max(1, number(connections)))}")
    if tries := option(options, "max-tries"):
        lines.append(f"attempts: {min(1000, number(tries) or 1000)}")
    if timeout := option(options, "timeout"):
        lines.append(f"timeout: {number(timeout)}s")
    if option(options, "allow-overwrite") == "true":
        lines.append("overwrite: yes")
    return lines


def number(value) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise Refused(f"{str(value)[:40]!r} is no number", -32602) from None


class Methods:
    """The methods of aria2 (aria2c(1), RPC INTERFACE), one at a time. Their names begin with `call_`."""

    def __init__(self, spool: Spool, token: str):
        self.spool, self.token = spool, token
        self.session = secrets.token_hex(20)
        self.lock = threading.Lock()

    def names(self) -> list[str]:
        own = [f"aria2.{name[5:]}" for name in dir(self) if name.startswith("call_")]
        return own + ["system.multicall", "system.listMethods", "system.listNotifications"]

    def call(self, method, params, nested: bool = False):
        if not isinstance(method, str):
            raise Refused("Invalid request.", -32600)
        if not isinstance(params, list):
            raise Refused("The parameters are no array.", -32602)
        if method == "system.listMethods":
            return self.names()
        if method == "system.listNotifications":
            return []
        if method == "system.multicall" and not nested:
            return self.multicall(*params[:1])
        space, _, name = method.partition(".")
        function = getattr(self, f"call_{name}", None) if space == "aria2" else None
        if not function:
            raise Refused(f"No such method: {method[:60]}", -32601)
        given = params[0] if params and isinstance(params[0], str) else ""
        if not hmac.compare_digest(given.encode("utf-8", "replace"), b"token:" + self.token.encode()):
            raise Refused("Unauthorized")
        with self.lock:
            try:
                return function(*params[1:])
            except TypeError as error:
                if error.__traceback__ and error.__traceback__.tb_next is None:
                    raise Refused("The parameters are wrong.", -32602) from None
                traceback.print_exc()
                raise Refused("Internal error.", -32603) from None
            except RecursionError:
                raise Refused("The parameters are nested too deeply.", -32602) from None
            except OSError as error:
                raise Refused(f"{error.strerror}: {error.filename!r}") from None
            except (ValueError, KeyError, AttributeError, subprocess.SubprocessError):
                traceback.print_exc()
                raise Refused("Internal error.", -32603) from None

    def multicall(self, calls=None):
        if not isinstance(calls, list) or len(calls) > MAXIMUM_CALLS:
            raise Refused("The parameters are wrong.", -32602)
        results = []
        for call in calls:
            try:
                if not isinstance(call, dict):
                    raise Refused("Invalid request.", -32600)
                results.append([self.call(call.get("methodName"), call.get("params", []), nested=True)])
            except Refused as refusal:
                results.append({"code": refusal.code, "message": str(refusal)})
        return results

    # Dropping.

    def call_addUri(self, urls, options=None, position=None):
        options = {} if options is None else options
        if not isinstance(urls, list) or not urls or len(urls) > 100 or not isinstance(options, dict):
            raise Refused("The parameters are wrong.", -32602)
        root, below = place(self.spool, options)
        lines = job_lines(self.spool, urls, options)
        if root:
            lines.append(f"root: {root}")
        out = option(options, "out")
        if out or below:
            lines.append(f"output: {below + '/' if below else ''}{out}")
        [(name, text)] = self.spool.checked("\n".join(lines).encode() + b"\n")
        job = Job(self.spool, "new", name, name, os.stat_result([0] * 10))
        for line in lines:
            key, _, value = line.partition(": ")
            job.keys.setdefault(key, []).append(value)
        for failed in self.spool.jobs(["failed"]):
            # Clients try a job again so, with the URLs that they were told, which lack logins and queries.
            if job.keys["url"] == failed.urls and failed.path == job.path and self.repeats(lines, failed):
                # As it is: what reads a list would leave out comments, of which some forbid something.
                return self.begun(failed.name, failed.request(), options)
        if not any(line.startswith(("overwrite", *DIGESTS.values())) for line in lines):
            if option(options, "auto-file-renaming") != "false":
                text = self.renamed(job, text)
        return self.begun(name, text, options)

    @staticmethod
    def repeats(lines: list[str], failed: Job) -> bool:
        """Whether a client asks for no more than what it was told of a job."""
        told = {f"url: {url}" for url in failed.urls} | {"connections: 1"}
        for key in ("root", "connections", *DIGESTS.values()):
            told |= {f"{key}: {value}" for value in failed.keys.get(key, [])}
        return all(line in told or line.startswith("output: ") for line in lines)

    def renamed(self, job: Job, text: bytes) -> bytes:
        """The text with an output that no file has, and no job that waits or runs, as aria2 calls it."""
        # In the order in which jobs move, one directory after the other.
        folders = [*WAITING, "cur", "partial"]
        others = (self.spool.text(other) for folder in folders for other in self.spool.jobs([folder]))
        taken = {other.output for other in others if other and other.keys.get("root") == job.keys.get("root")}
        stem, dot, suffix = job.output.rpartition(".")
        if not stem or "/" in suffix:
            stem, dot, suffix = job.output, "", ""
        output = job.output
        for count in range(1, 1000):
            if output not in taken and not os.path.lexists(os.path.join(job.directory, output)):
                break
            output = f"{stem}.{count}{dot}{suffix}"
        if output == job.output:
            return text
        kept = [line for line in text.splitlines() if not line.startswith(b"output:")]
        return b"\n".join([*kept, b"output: " + output.encode(), b""])

    def begun(self, name: bytes, text: bytes, options: dict) -> str:
        return self.spool.drop(name, text, "hold" if option(options, "pause") == "true" else "new")

    def call_addMetalink(self, text, options=None, position=None):
        try:
            metalink = base64.b64decode(text, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise Refused("The metalink is not in base64.", -32602) from None
        options = {} if options is None else options
        if not isinstance(options, dict):
            raise Refused("The options are no object.", -32602)
        root, below = place(self.spool, options)
        refuse(options)
        if root or any(options.get(name) not in (None, "", "0", 0, []) for name in REFUSED_WITH_METALINK):
            raise Refused("options of a metalink are dir, below the output directory, and pause")
        words = [f"--output={below}/"] if below else []
        gids = []
        try:
            for name, text in self.spool.checked(metalink, "--format", "metalink", *words):
                # Their lists of pieces are in the other spool.
                lines = [line for line in text.splitlines(True) if not line.startswith(b"pieces:")]
                gids.append(self.begun(name, b"".join(lines), options))
        except (OSError, Refused):
            for gid in gids:
                # A short one may be done already.
                with contextlib.suppress(Refused, OSError):
                    self.spool.steer(gid, "cancel", ["cur", *WAITING], "")
            raise
        return gids

    def call_addTorrent(self, *_):
        raise Refused("BitTorrent is not what spoolrun does")

    # Telling.

    def call_tellStatus(self, gid, keys=None):
        try:
            return self.spool.find(gid).tell(keys)
        except Refused:
            if not (status := self.spool.removed.get(str(gid))):
                raise
            return {key: value for key, value in status.items() if not keys or key in keys}

    def told(self, jobs: list[Job], keys) -> list[dict]:
        return [job.tell(keys) for job in map(self.spool.text, jobs) if job]

    def part(self, jobs: list[Job], offset, count, keys) -> list[dict]:
        """A negative offset counts from the end, and backwards."""
        offset, count = number(offset), min(1000, max(0, number(count)))
        if offset < 0:
            jobs, offset = jobs[::-1], -offset - 1
        return self.told(jobs[offset:offset + count], keys)

    def call_tellActive(self, keys=None):
        return self.told(self.spool.jobs(["cur"]), keys)

    def call_tellWaiting(self, offset, count, keys=None):
        return self.part(self.spool.jobs(WAITING), offset, count, keys)

    def call_tellStopped(self, offset, count, keys=None):
        jobs = sorted(self.spool.stopped(), key=lambda job: job.status.st_mtime_ns)
        return self.part(jobs, offset, count, keys)

    def call_getGlobalStat(self):
        active = [job for job in map(self.spool.text, self.spool.jobs(["cur"])) if job]
        stopped = str(len(self.spool.stopped()))
        return {"downloadSpeed": str(sum(self.spool.rate(job, job.lengths()[0]) for job in active)),
                "uploadSpeed": "0", "numActive": str(len(active)), "numWaiting": str(len(self.spool.jobs(WAITING))),
                "numStopped": stopped, "numStoppedTotal": stopped}

    def call_getFiles(self, gid):
        return self.spool.find(gid).tell(["files"])["files"]

    def call_getUris(self, gid):
        return self.call_getFiles(gid)[0]["uris"]

    def call_getPeers(self, gid):
        return []

    def call_getServers(self, gid):
        job = self.spool.find(gid)
        status = job.tell()
        servers = [{"uri": url, "currentUri": url, "downloadSpeed": status["downloadSpeed"]} for url in job.urls[:1]]
        return [{"index": "1", "servers": servers}] if job.folder == "cur" else []

    def call_getOption(self, gid):
        return self.spool.find(gid).options()

    def call_getGlobalOption(self):
        worker = self.spool.worker()
        return {"dir": self.spool.directory(), "continue": "true", "auto-file-renaming": "true",
                "allow-overwrite": "false", "max-concurrent-downloads": worker.get("jobs", "20"),
                "max-overall-download-limit": "0", "max-download-limit": "0", "split": worker.get("connections", "1"),
                "max-connection-per-server": worker.get("connections", "1")}

    def call_getVersion(self):
        return {"version": "1.37.0", "enabledFeatures": ["HTTPS", "Message Digest", "Metalink"],
                "spoolrun": self.spool.run("--version").strip()}

    def call_getSessionInfo(self):
        return {"sessionId": self.session}

    def call_saveSession(self):
        # All is in files at any moment.
        return "OK"

    # Steering.

    def call_pause(self, gid):
        return self.spool.steer(gid, "hold", ["cur", "urgent", "new", "partial"], f"GID#{gid} cannot be paused now").gid

    def call_unpause(self, gid):
        if self.spool.find(gid).folder == "failed":
            return self.spool.steer(gid, "retry", ["failed"], "The job has moved.").gid
        return self.spool.steer(gid, "release", ["hold"], f"GID#{gid} cannot be unpaused now").gid

    def call_pauseAll(self):
        return self.spool.steer_all("hold", ["cur", "urgent", "new", "partial"])

    def call_unpauseAll(self):
        return self.spool.steer_all("release", ["hold"])

    def call_remove(self, gid):
        job = self.spool.find(gid)
        told = job.tell()
        self.spool.steer(gid, "cancel", ["cur", *WAITING], f"Active Download not found for GID#{gid}")
        if len(self.spool.removed) >= 1000:
            self.spool.removed.pop(next(iter(self.spool.removed)))
        self.spool.removed[gid] = told | {"status": "removed", "downloadSpeed": "0", "errorCode": "31"}
        return gid

    call_forcePause, call_forcePauseAll, call_forceRemove = call_pause, call_pauseAll, call_remove

    def call_removeDownloadResult(self, gid):
        try:
            # Where a receipt and a failed job have one name, a client may mean either: the receipt first, which only
            # goes to the archive.
            job = self.spool.find(gid, ["done", *FOLDERS])
        except Refused:
            if self.spool.removed.pop(str(gid), None):
                return "OK"
            raise
        if job.folder == "done":
            self.spool.archive(job)
        else:
            self.spool.steer(gid, "cancel", ["failed"], f"Could not remove download result of GID#{gid}")
        return "OK"

    def call_purgeDownloadResult(self):
        # Failed jobs stay: they are what needs a person, and their data may be the most of a file.
        self.spool.removed.clear()
        for job in list(self.spool.listing("done")):
            if found := self.spool.text(job):
                self.spool.archive(found)
        return "OK"

    def call_changePosition(self, gid, position, how):
        if (position, how) != (0, "POS_SET"):
            raise Refused("jobs start in the order of their files; only to the front is possible")
        self.spool.steer(gid, "prioritise", ["new", "partial"], f"GID#{gid} not found in the waiting queue.")
        return 0

    def refused(self, *_):
        raise Refused("options of a worker are its own, and those of a job are in its file: `spoolrun hold`, edit, "
                      "`spoolrun release`")

    call_changeGlobalOption = call_changeOption = call_changeUri = refused
