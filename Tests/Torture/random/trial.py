"""A trial: resources with versions, jobs for them, and the program of replies by which the server answers. A seed draws
all of it."""

import hashlib
import random
from dataclasses import dataclass, field
from functools import lru_cache

# The mark of a secret, wherever one is sent: no log and no journal may have it.
SECRET = "S3CR3T"
TRANSPORTS = ["http", "https"]


@lru_cache(maxsize=1000)
def content(salt: str, size: int) -> bytes:
    return hashlib.shake_128(salt.encode()).digest(size)


@dataclass
class Version:
    """Bytes that only one version of one resource has."""

    salt: str
    size: int
    etag: str | None = None
    modified: str | None = None

    @property
    def content(self) -> bytes:
        return content(self.salt, self.size)

    @property
    def validator(self) -> str | None:
        """The strong validator, if there is one."""
        if self.etag is None:
            return self.modified
        return None if self.etag.startswith("W/") else self.etag


@dataclass
class Resource:
    host: str
    path: str
    query: str
    versions: list[Version]
    # Before each of these requests of the trial, counted from 0, the next version replaces the one before.
    switches: list[int] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.host + self.path + (f"?{self.query}" if self.query else "")


@dataclass
class Way:
    """A URL that redirects. The number of requests so far determines the target."""

    url: str
    targets: list[str]
    switches: list[int] = field(default_factory=list)
    # The query has a signature that changes each time.
    signs: bool = False
    status: int = 302


@dataclass
class Step:
    """How one request for a resource is answered. By default: correctly."""

    # Any other status has a short body of its own; `portal`: 200 with a page that was not requested; `detour`: a
    # redirect to such a page elsewhere; `mute`: no answer.
    kind: str = "serve"
    status: int = 0
    if_range: str = "honoured"
    ranges: str = "right"
    # The number of bytes by which the range is wrong.
    by: int = 0
    body: str = "true"
    # The number of missing, surplus or wrong bytes.
    count: int = 0
    framing: str = "length"
    validators: str = "own"
    encoding: str = ""
    # `good`, or how the body ends after `at` thousandths of it.
    end: str = "good"
    at: int = 1000
    # What happens to worker or job when `at` of the body is sent, and after how many seconds.
    act: str = ""
    pause: float = 0.0


@dataclass
class Job:
    urls: list[str]
    declares_size: bool = False
    declares_crc32: bool = False
    connections: int = 1
    header: bool = False
    login: bool = False


@dataclass
class Gesture:
    """What a person does to the job, and after how many runs."""

    run: int
    job: int
    kind: str
    urls: list[str] = field(default_factory=list)


@dataclass
class Trial:
    seed: int
    transport: str
    resources: list[Resource]
    ways: list[Way]
    jobs: list[Job]
    steps: list[Step]
    # Whether the program starts again at its end; otherwise all later answers are correct.
    repeats: bool = False
    runs: int = 2
    gestures: list[Gesture] = field(default_factory=list)
    # The framing of correct answers.
    framing: str = "length"
    page_changes: bool = False
    chunk_size: int = 4096
    workers: int = 1

    @property
    def waits(self) -> bool:
        """Whether the server makes a client wait: then a short timeout would hit others at random on a busy machine."""
        return any(step.kind == "mute" or step.end == "stall" for step in self.steps)

    def leads_to(self, url: str) -> list[Resource]:
        """All resources that a URL of a job may lead to."""
        found = {resource.url: resource for resource in self.resources}
        ways = {way.url: way for way in self.ways}
        seen, open_urls = [], [url]
        while open_urls:
            one = open_urls.pop()
            if one in found:
                seen.append(found[one])
            elif one in ways:
                open_urls += ways[one].targets
        return seen

    def final(self, job: Job) -> Version:
        """What an honest server has for the job's first URL at the end."""
        url = job.urls[0]
        ways = {way.url: way for way in self.ways}
        while url in ways:
            url = ways[url].targets[-1]
        return next(resource.versions[-1] for resource in self.resources if resource.url == url)


def draw(seed: int) -> Trial:
    return _Drawing(seed).trial()


class _Drawing:
    def __init__(self, seed: int):
        self.seed = seed
        self.chance = random.Random(seed)
        self.company = company(seed)

    def often(self, probability: float) -> bool:
        return self.chance.random() < probability

    def choose(self, weights: dict) -> object:
        return self.chance.choices(list(weights), list(weights.values()))[0]

    def size(self) -> int:
        return self.choose({1: 1, 2: 1, self.chance.randrange(1, 300): 2, self.chance.randrange(300, 20_000): 12, self.chance.randrange(20_000, 60_000): 3})

    # MARK: resources

    def resources(self) -> list[Resource]:
        """Draws resources as on one site: often of one size and then, as with nginx, with one ETag if they were written
        in the same second."""
        validators = self.choose({"etag": 6, "etag and date": 2, "weak": 1, "date": 2, "none": 1.5})
        same_size = self.size() if self.often(0.5) else None
        # The ETag is made of this and the size. It is the same for several resources, but never for two versions of
        # one, unless the server breaks the rules.
        breaks_rules = self.often(0.04)
        # The ETag does not depend on the size either, as with a program that has one for all files. Then only the size
        # tells versions apart.
        is_constant = self.often(0.2)
        if is_constant and self.often(0.7):
            same_size = None
        by_query = self.often(0.15)
        found = []
        for number in range(self.choose({1: 3, 2: 4, 3: 2})):
            host = "b" if self.often(0.3) and number > 0 else "a"
            path, query = ("/get", f"id={number}") if by_query else (f"/r{number}", "")
            # A mirror: the same path on another host.
            if number > 0 and self.often(0.3) and not by_query:
                host, path = "b", "/r0"
            if any((host, path, query) == (other.host, other.path, other.query) for other in found):
                continue
            second = self.chance.randrange(2) if self.often(0.3) else 0
            versions = []
            for age in range(self.choose({1: 5, 2: 4, 3: 1})):
                size = same_size or self.size()
                mark = second if breaks_rules else second + 10 * age
                version = Version(f"{self.seed} {number} {age}", size)
                if "etag" in validators:
                    version.etag = '"constant"' if is_constant else f'"{mark:x}-{size:x}"'
                if validators == "weak":
                    version.etag = f'W/"{mark:x}-{size:x}"'
                if "date" in validators:
                    version.modified = date(mark)
                versions.append(version)
            switches = sorted(self.chance.randrange(1, 8) for _ in versions[1:])
            found.append(Resource(host, path, query, versions, switches))
        # The mirror is correct.
        if len(found) > 1 and self.often(0.3):
            for resource in found[1:]:
                resource.versions, resource.switches = found[0].versions, found[0].switches
        return found

    def ways(self, resources: list[Resource]) -> list[Way]:
        ways = []
        urls = [resource.url for resource in resources]
        if self.often(0.35):
            targets = self.chance.sample(urls, len(urls))
            ways.append(Way("a/latest", targets, sorted(self.chance.randrange(1, 6) for _ in targets[1:])))
        if self.often(0.25):
            way = Way("a/go", [self.chance.choice(urls)], signs=True, status=self.chance.choice([301, 302, 303, 307, 308]))
            ways.append(way)
        return ways

    # MARK: jobs

    def job(self, urls: list[str]) -> Job:
        job = Job([self.chance.choice(urls)])
        if self.often(0.25):
            job.urls += [url for url in self.chance.sample(urls, min(len(urls), self.chance.randint(1, 2))) if url not in job.urls]
        job.declares_size = self.often(0.25)
        job.declares_crc32 = self.often(0.25)
        job.connections = self.choose({1: 5, 2: 2, 3: 1, 4: 1, 8: 1})
        job.header = self.often(0.15)
        job.login = self.often(0.1)
        return job

    def gestures(self, runs: int, jobs: list[Job], urls: list[str]) -> list[Gesture]:
        found = []
        for run in range(runs):
            for number, _ in enumerate(jobs):
                if self.often(0.12):
                    kind = self.choose({"hold": 1, "edit": 3, "cancel": 0.4, "retry": 1, "anew": 0.5})
                    found.append(Gesture(run, number, kind, [self.chance.choice(urls)] if kind == "edit" else []))
        return found

    # MARK: the program

    def step(self) -> Step:
        step = Step()
        if self.often(0.15):
            step.kind = self.choose({"status": 4, "portal": 3, "detour": 1, "mute": 0.15})
            step.status = self.choose({200: 3, 511: 1}) if step.kind == "portal" else self.chance.choice(
                [404, 403, 410, 401, 400, 416, 429, 500, 502, 503, 504, 204, 304, 300, 418]
            )
            step.framing = self.choose({"length": 3, "chunked": 1, "close": 1})
            return step
        step.if_range = self.choose({"honoured": 6, "ignored": 3, "refused": 1})
        step.ranges = self.choose(
            {
                "right": 12, "shifted": 1, "short": 2, "long": 1, "total": 1, "star": 1.5, "missing": 0.5, "multipart": 0.7, "two": 0.3, "unsatisfied": 0.7,
                "from 0": 0.7, "garbage": 0.5, "none": 1.5, "unasked": 0.5,
            }
        )
        step.by = self.chance.choice([-1000, -100, -1, 1, 1, 7, 100, 260, 1000, 5000])
        step.body = self.choose({"true": 10, "short": 1, "surplus": 2.5, "tail": 2.5})
        step.count = self.chance.choice([1, 2, 100, 260, 1000, 5000])
        step.framing = self.choose({"length": 6, "chunked": 4, "close": 2, "too long": 0.7, "too short": 0.7, "bad chunk": 0.5, "no last chunk": 0.7})
        step.validators = self.choose({"own": 14, "none": 1, "other": 0.5, "weak": 0.5, "two": 0.2, "old": 0.3})
        if self.often(0.03):
            step.encoding = self.chance.choice(["gzip", "identity", "br"])
        step.end = self.choose({"good": 6 * (step.body != "tail"), "fin": 3, "reset": 2, "goodbye": 1, "stall": 0.12})
        if step.end != "good":
            step.at = self.choose({0: 1, 1000: 1, self.chance.randrange(1000): 8})
        if self.company["strikes"] and self.often(0.08):
            step.act = self.choose({"kill": 3, "stop": 0.7, "hold": 1, "cancel": 0.5, "power cut": 1.5})
            # Often after all bytes are sent: then the payload is verified and published.
            step.at = self.chance.choice([1000, self.chance.randrange(1000)])
            step.pause = self.chance.choice([0, 0.002, 0.005, 0.01, 0.02, 0.3])
        return step

    def trial(self) -> Trial:
        transport = self.choose({"http": 6, "https": 3})
        resources = self.resources()
        ways = self.ways(resources)
        urls = [resource.url for resource in resources] + [way.url for way in ways]
        jobs = [self.job(urls) for _ in range(self.choose({1: 8, 2: 1}))]
        runs = self.choose({1: 2, 2: 4, 3: 2})
        return Trial(
            self.seed, transport, resources, ways, jobs, [self.step() for _ in range(self.choose({1: 2, 2: 3, 3: 3, 4: 2, 6: 1}))],
            repeats=self.often(0.2), runs=runs, gestures=self.gestures(runs, jobs, urls),
            framing=self.choose({"length": 5, "chunked": 1}), page_changes=self.often(0.3),
            chunk_size=self.company["chunk_size"], workers=self.company["workers"],
        )


# The number of trials in one spool.
BATCH = 40


def company(seed: int) -> dict[str, int]:
    """What the trials of one batch share. A killed worker has all of their jobs, so only some batches have `strikes`.
    In the others a trial runs as it does alone."""
    chance = random.Random(f"batch {seed // BATCH}")
    return {"chunk_size": chance.choice([1024, 1024, 4096, 4096, 16384]), "workers": chance.choice([1, 1, 1, 2]), "strikes": chance.choice([0, 0, 1])}


def date(second: int) -> str:
    return f"Thu, 01 Jan 2026 00:00:{second:02} GMT"
