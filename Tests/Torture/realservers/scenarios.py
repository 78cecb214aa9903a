"""The scenarios for each server, and their expected outcomes."""

import itertools
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from content import Site
from servers import Forward, Place, Server
from trial import Trial

LARGE = 3 << 20
# Where a download is interrupted, and its rate until then.
MIDDLE = 1 << 20
SLOWLY = ("--limit-rate", "2M")
# A size that exceeds all buffers of sockets and proxies; and its rate.
BEYOND_BUFFERS = 32 << 20
LESS_SLOWLY = ("--limit-rate", "16M")
# The number of runs that a job may need after its server works again.
ROUNDS = 4
# How many jobs may find that a server is away: those that run.
MOST_FAILED = 16
numbers = itertools.count()


@dataclass
class Outcome:
    text: str
    is_problem: bool = False


class Scene:
    """A server, its files, and a spool."""

    def __init__(self, program: Path, place: Place, site: Site, server: Server):
        self.program = program
        self.place = place
        self.site = site
        self.server = server
        self.number = next(numbers)
        self.trial = self.new_trial(server.environment)

    def new_trial(self, environment: dict[str, str]) -> Trial:
        work = self.place.work / f"trial{self.number}"
        work.mkdir()
        return Trial(self.program, work / "spool", self.place.authority, environment)

    def file(self, size: int = LARGE, ending: str = ".bin", mtime_ns: int | None = None) -> str:
        """A new file, which no cache has."""
        name = f"file{next(numbers)}{ending}"
        self.site.put(name, size, mtime_ns)
        return name

    def drop(self, path: str, name: str, *lines: str) -> None:
        self.trial.drop(name, self.server.url(f"{path}/{name}"), *lines)

    def drop_dying(self, name: str, deaths: int, kind: str, at: int, is_tagged: bool, *lines: str, slow: int = 0) -> None:
        self.trial.drop(name, self.app_url(name, deaths, kind, at, is_tagged, slow), *lines)

    def app_url(self, name: str, deaths: int, kind: str, at: int, is_tagged: bool, slow: int = 0) -> str:
        """The URL of a file at origin.py."""
        tag = "&tag=1" if is_tagged else ""
        return self.server.url(f"app/{name}?key={name}&deaths={deaths}&kind={kind}&at={at}&slow={slow}{tag}")

    def judge(self, *names: str, may_refetch: bool = True) -> Outcome:
        """Checks that each job is done, with one version of its file."""
        again = 0
        for name in names:
            if wrong := self.wrong(name):
                return Outcome(wrong, True)
            again += self.trial.fetched(name) - self.size(name)
        if self.trial.problems:
            return Outcome("; ".join(self.trial.problems), True)
        if again > 0 and not may_refetch:
            return Outcome(f"{again} BYTES TWICE", True)
        return Outcome(f"{again} twice" if again else "ok")

    def size(self, name: str) -> int:
        return len(self.site.versions[name][0])

    def wrong(self, name: str) -> str | None:
        content, state = self.trial.payload(name), self.trial.state(name)
        if content is not None:
            if self.site.version_of(name, content) is None:
                versions = self.site.versions[name]
                what = "CUT" if any(version.startswith(content) for version in versions) else "WRONG"
                if len(versions) > 1 and content[:1024] == versions[0][:1024] and content[-1024:] == versions[1][-1024:]:
                    what = "SPLICE"
                return f"{what} PUBLISHED, {len(content)} of {len(versions[0])}"
        if state != "done" or content is None:
            return f"NOT DONE: {state}, {' '.join(self.trial.codes(name)) or 'no failure'}"
        return None

    def asked_directly(self, path: str, name: str) -> list[str]:
        """The validators that the server sends now, by curl."""
        command = ["curl", "--silent", "--head", "--cacert", self.place.authority, self.server.url(f"{path}/{name}")]
        said = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True, env=os.environ | self.server.environment).stdout
        fields = [line.partition(": ") for line in said.splitlines()]
        return [value for name, _, value in fields if name.lower() in ("etag", "last-modified")]


Play = Callable[[Scene], Outcome]


# MARK: whole files

def plain(scene: Scene) -> Outcome:
    names = [scene.file(size) for size in (0, 1, 1000, 65536, LARGE)]
    for name in names:
        scene.drop("plain", name)
    scene.trial.run()
    return scene.judge(*names, may_refetch=False)


def large(scene: Scene) -> Outcome:
    name = scene.file(48 << 20)
    scene.drop("plain", name, "connections: 4")
    scene.trial.run()
    return scene.judge(name)


def pieces(scene: Scene) -> Outcome:
    names = [scene.file(size) for size in (0, 1, 65536, 65537, LARGE)]
    for name in names:
        scene.drop("plain", name)
    scene.trial.run("--connections", "4", "--chunk-size", "64k")
    return scene.judge(*names)


def pieces_without_ranges(scene: Scene) -> Outcome:
    name = scene.file()
    scene.drop("noranges", name)
    scene.trial.run("--connections", "4", "--chunk-size", "64k")
    return scene.judge(name)


def kinds(scene: Scene) -> Outcome:
    """Types that servers like to compress."""
    names = [scene.file(100_000, ending) for ending in (".txt", ".html", ".json", ".svg", ".js", ".tar.gz", ".gz", ".svgz")]
    for name in names:
        scene.drop("plain", name)
    scene.trial.run()
    return scene.judge(*names, may_refetch=False)


def kinds_killed(scene: Scene) -> Outcome:
    name = scene.file(ending=".html")
    scene.drop("plain", name)
    scene.trial.kill_in_the_middle(name, MIDDLE, *SLOWLY)
    scene.trial.settle(ROUNDS)
    return scene.judge(name, may_refetch=not scene.server.resumes)


def coded(scene: Scene) -> Outcome:
    """It must not be published, because it is not what was requested. spool(5) describes that under bad-response."""
    return refused(scene, "forced", ".txt")


def named_gz(scene: Scene) -> Outcome:
    return refused(scene, "coded", ".tar.gz")


def refused(scene: Scene, path: str, ending: str) -> Outcome:
    name = scene.file(100_000, ending)
    scene.drop(path, name)
    scene.trial.run()
    content, codes = scene.trial.payload(name), scene.trial.codes(name)
    if content is None and codes and set(codes) == {"bad-response"}:
        return Outcome("refused")
    if content is not None and scene.site.version_of(name, content) is not None:
        return Outcome("ok")
    return Outcome(f"NOT REFUSED: {scene.trial.state(name)}, {codes}", True)


def redirect(scene: Scene) -> Outcome:
    name = scene.file()
    scene.drop("moved", name)
    scene.trial.kill_in_the_middle(name, MIDDLE, *SLOWLY)
    scene.trial.settle(ROUNDS)
    return scene.judge(name, may_refetch=not scene.server.resumes)


def slow_start(scene: Scene) -> Outcome:
    name = scene.file(100_000)
    scene.drop_dying(name, 0, "chunked", 0, True, slow=3)
    scene.trial.run()
    return scene.judge(name)


# MARK: killed and resumed

def killed(path: str, resumes: bool) -> Play:
    def play(scene: Scene) -> Outcome:
        name = scene.file()
        scene.drop(path, name)
        scene.trial.kill_in_the_middle(name, MIDDLE, *SLOWLY)
        scene.trial.settle(ROUNDS)
        return scene.judge(name, may_refetch=not (resumes and scene.server.resumes))

    return play


def killed_thrice_in_pieces(scene: Scene) -> Outcome:
    name = scene.file()
    scene.drop("plain", name)
    options = ("--connections", "4", "--chunk-size", "64k")
    for part in (1, 2, 3):
        if scene.trial.state(name) != "done":
            scene.trial.kill_in_the_middle(name, part * LARGE // 4, *SLOWLY, *options)
    scene.trial.settle(ROUNDS, *options)
    return scene.judge(name)


def changed(path: str, options: tuple[str, ...] = ()) -> Play:
    """Another version of the same size, made while nothing runs."""

    def play(scene: Scene) -> Outcome:
        name = scene.file()
        scene.drop(path, name)
        scene.trial.kill_in_the_middle(name, MIDDLE, *SLOWLY, *options)
        scene.site.put(name, LARGE)
        scene.trial.settle(ROUNDS, *options)
        return scene.judge(name)

    return play


def same_second(path: str, is_young: bool) -> Play:
    """Another version of the same size and the same second. If the server gives both one validator, the protocol cannot
    distinguish them."""

    def play(scene: Scene) -> Outcome:
        if is_young:
            # So that the first answer comes within the second of the change.
            time.sleep(1 - time.time() % 1)
        second = int(time.time()) if is_young else scene.site.begun
        name = scene.file(mtime_ns=second * 10**9)
        scene.drop(path, name)
        scene.trial.kill_in_the_middle(name, MIDDLE, *SLOWLY)
        held_to = scene.trial.validator(name)
        scene.site.put(name, LARGE, second * 10**9 + (400_000_000 if is_young else 0))
        offered = scene.asked_directly(path, name)
        scene.trial.settle(ROUNDS)
        outcome = scene.judge(name)
        if "SPLICE" in outcome.text and held_to in offered and not scene.trial.problems:
            return Outcome("cannot tell")
        return outcome

    return play


def restarted(scene: Scene) -> Outcome:
    """The server is killed during a transfer, and restarted."""
    name = scene.file(BEYOND_BUFFERS)
    scene.drop("plain", name)
    process = scene.trial.start(*LESS_SLOWLY)
    scene.trial.wait_for(process, name, MIDDLE)
    scene.server.stop()
    time.sleep(0.3)
    scene.server.start()
    scene.trial.end(process)
    scene.trial.settle(ROUNDS)
    return scene.judge(name)


def restarted_with_another_version(scene: Scene) -> Outcome:
    name = scene.file(BEYOND_BUFFERS)
    scene.drop("plain", name, "connections: 2")
    options = ("--chunk-size", "1M", *LESS_SLOWLY)
    process = scene.trial.start(*options)
    scene.trial.wait_for(process, name, MIDDLE)
    scene.server.stop()
    scene.site.put(name, BEYOND_BUFFERS)
    scene.server.start()
    scene.trial.end(process)
    scene.trial.settle(ROUNDS, *options)
    return scene.judge(name)


# MARK: an origin that dies

def dying(kind: str, is_tagged: bool, deaths: int = 2, options: tuple[str, ...] = ()) -> Play:
    """The first answers end early. No run may accept them as the whole."""

    def play(scene: Scene) -> Outcome:
        name = scene.file()
        scene.drop_dying(name, deaths, kind, LARGE // 3, is_tagged)
        scene.trial.run(*options)
        scene.trial.settle(ROUNDS + deaths, *options)
        outcome = scene.judge(name)
        if "CUT" in outcome.text and not scene.trial.problems and ends_in_good_order(scene, kind, is_tagged):
            return Outcome("cannot tell")
        return outcome

    return play


def ends_in_good_order(scene: Scene, kind: str, is_tagged: bool) -> bool:
    """Whether the server completes what its origin cut, also over HTTP/1.1, as Caddy 2.6 does. No client can detect
    that."""
    name = scene.file()
    url = scene.app_url(name, 1, kind, LARGE // 3, is_tagged)
    command = ["curl", "--silent", "--http1.1", "--cacert", scene.place.authority, "--output", os.devnull, url]
    return subprocess.run(command, check=False, env=os.environ | scene.server.environment).returncode == 0


# MARK: proxies

def wrong_login(scene: Scene) -> Outcome:
    """407 says nothing about the job, so the job must still exist when the login is corrected."""
    server = scene.server
    assert isinstance(server, Forward)
    name = scene.file(100_000)
    trial = scene.trial
    trial.environment = os.environ | server.names("user:wrong@")
    scene.drop("plain", name)
    trial.run()
    state, codes = trial.state(name), trial.codes(name)
    if state == "failed" and codes == ["http-401"]:
        # tinyproxy 1.11 sends 401, which only an origin should send.
        return Outcome("cannot tell")
    if state not in ("new", "partial"):
        return Outcome(f"407: {state}, {' '.join(codes)}", True)
    trial.environment = os.environ | server.environment
    trial.settle(ROUNDS)
    return scene.judge(name)


# MARK: servers that set limits

def limited(path: str, count: int, size: int, most_refused: int, most_seconds: float, *options: str) -> Play:
    """More jobs than the server allows at once. None may lose an attempt, and the server must not say no often: to those
    that are under way when it first does, and now and then later."""

    def play(scene: Scene) -> Outcome:
        # The zone may still be full.
        time.sleep(1)
        names = [scene.file(size) for _ in range(count)]
        for name in names:
            scene.drop(path, name)
        said = scene.place.log.stat().st_size
        begun = time.monotonic()
        for _ in range(ROUNDS):
            if scene.trial.waiting() and not scene.trial.problems:
                scene.trial.run(*options)
        took = time.monotonic() - begun
        outcome = scene.judge(*names)
        statuses = [line[:3] for line in scene.place.log.read_text(errors="replace")[said:].splitlines() if f"/{path}/" in line]
        refused = sum(status in ("429", "503") for status in statuses)
        lost = sum("burned=no" not in line for name in names for line in scene.trial.journal(name).splitlines() if line.startswith("failed: "))
        if outcome.is_problem or not lost and took <= most_seconds and refused <= most_refused:
            return outcome
        return Outcome(f"{lost} ATTEMPTS LOST, {refused} OF {len(statuses)} REFUSED, {took:.1f} s", True)

    return play


def proxy_away(scene: Scene) -> Outcome:
    """It does not run. That says nothing about the jobs."""
    names = [scene.file(1000) for _ in range(20)]
    for name in names:
        scene.drop("plain", name)
    scene.server.stop()
    scene.trial.run()
    asked = sum(map(len, map(scene.trial.codes, names)))
    scene.server.start()
    scene.trial.settle(ROUNDS)
    outcome = scene.judge(*names)
    return outcome if outcome.is_problem or asked <= MOST_FAILED else Outcome(f"{asked} JOBS HAVE FAILED", True)


PIECES = ("--connections", "4", "--chunk-size", "64k")
# Each needs the path that it requests.
SCENARIOS: dict[str, tuple[str, Play]] = {
    "plain": ("plain", plain),
    "48 MiB, 4 connections": ("plain", large),
    "pieces of 64k": ("plain", pieces),
    "pieces, no ranges": ("noranges", pieces_without_ranges),
    "types": ("plain", kinds),
    "types, kill -9": ("plain", kinds_killed),
    "gzip unasked": ("forced", coded),
    "gzip by name": ("coded", named_gz),
    "redirect, kill -9": ("moved", redirect),
    "slow start": ("app", slow_start),
    "kill -9": ("plain", killed("plain", True)),
    "kill -9, weak": ("weak", killed("weak", False)),
    "kill -9, date": ("date", killed("date", True)),
    "kill -9, tagged": ("tagged", killed("tagged", True)),
    "kill -9, none": ("none", killed("none", False)),
    "kill -9, no ranges": ("noranges", killed("noranges", False)),
    "kill -9 thrice, pieces": ("plain", killed_thrice_in_pieces),
    "changed": ("plain", changed("plain")),
    "changed, pieces": ("plain", changed("plain", PIECES)),
    "changed, weak": ("weak", changed("weak")),
    "changed, date": ("date", changed("date")),
    "changed, none": ("none", changed("none")),
    "changed, no ranges": ("noranges", changed("noranges")),
    "changed, redirect": ("moved", changed("moved")),
    "same second": ("plain", same_second("plain", False)),
    "same second, date": ("date", same_second("date", False)),
    "same second, weak": ("weak", same_second("weak", False)),
    "this second": ("plain", same_second("plain", True)),
    "this second, date": ("date", same_second("date", True)),
    "restarted": ("plain", restarted),
    "restarted, changed": ("plain", restarted_with_another_version),
    "chunked, dies": ("app", dying("chunked", False)),
    "chunked, dies, 6 times": ("app", dying("chunked", False, deaths=6)),
    "chunked, dies, tag": ("app", dying("chunked", True)),
    "chunked, dies, pieces": ("app", dying("chunked", True, options=PIECES)),
    "dies after its head": ("app", dying("head", False)),
    "reset": ("app", dying("reset", False)),
    "reset, tag": ("app", dying("reset", True)),
    "length, dies": ("app", dying("length", False)),
    "length, dies, tag": ("app", dying("length", True)),
    "wrong login": ("login", wrong_login),
    "20 requests a second": ("counted", limited("counted", 300, 1000, 20, 30)),
    "two connections": ("few", limited("few", 24, 200_000, 5, 25)),
    "two connections, pieces": ("few", limited("few", 3, 1_600_000, 12, 25, *PIECES)),
    "proxy away": ("proxy", proxy_away),
}
