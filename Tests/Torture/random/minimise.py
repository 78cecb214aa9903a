"""Reduces a trial while it still fails, and describes it in words, close to a case of the lying server."""

from collections.abc import Awaitable, Callable, Iterator
from copy import deepcopy
from dataclasses import fields

from replies import Sent
from trial import Gesture, Job, Step, Trial

# The maximum number of generations, each of which tries to leave out everything.
MOST_GENERATIONS = 25


async def minimise(trial: Trial, fails: Callable[[list[Trial]], Awaitable[list[bool]]]) -> Trial:
    """fails: runs many trials at once."""
    for _ in range(MOST_GENERATIONS):
        candidates = list(smaller(trial))
        verdicts = await fails(candidates)
        good = [candidate for candidate, is_failing in zip(candidates, verdicts, strict=True) if is_failing]
        if not good:
            break
        trial = good[0]
    return trial


def smaller(trial: Trial) -> Iterator[Trial]:
    """The reductions, those that leave out the most first."""

    def changed(change: Callable[[Trial], None]) -> Iterator[Trial]:
        other = deepcopy(trial)
        change(other)
        if other != trial:
            yield other

    def less(name: str) -> Iterator[Trial]:
        for number in range(len(getattr(trial, name))):
            yield from changed(lambda other, number=number: getattr(other, name).pop(number))

    for number in range(len(trial.jobs)):
        if len(trial.jobs) > 1:
            yield from changed(lambda other, number=number: drop_job(other, number))
    yield from changed(lambda other: setattr(other, "repeats", False))
    yield from less("gestures")
    yield from less("steps")
    for number in range(len(trial.steps)):
        yield from changed(lambda other, number=number: other.steps.__setitem__(number, Step()))
    used = {resource.url for job in trial.jobs for url in job.urls for resource in trial.leads_to(url)}
    used |= {resource.url for gesture in trial.gestures for url in gesture.urls for resource in trial.leads_to(url)}
    yield from changed(lambda other: setattr(other, "resources", [resource for resource in other.resources if resource.url in used]))
    named = {url for job in trial.jobs for url in job.urls} | {url for gesture in trial.gestures for url in gesture.urls}
    yield from changed(lambda other: setattr(other, "ways", [way for way in other.ways if way.url in named]))
    for number, resource in enumerate(trial.resources):
        if len(resource.versions) > 1:
            yield from changed(lambda other, number=number: (other.resources[number].versions.pop(0), other.resources[number].switches.pop(0)))
            yield from changed(lambda other, number=number: (other.resources[number].versions.pop(), other.resources[number].switches.pop()))
    for number, job in enumerate(trial.jobs):
        for name, default in [("declares_size", False), ("declares_crc32", False), ("connections", 1), ("header", False), ("login", False)]:
            yield from changed(lambda other, number=number, name=name, default=default: setattr(other.jobs[number], name, default))
        if len(job.urls) > 1:
            yield from changed(lambda other, number=number: other.jobs[number].urls.pop())
            yield from changed(lambda other, number=number: other.jobs[number].urls.pop(0))
    for name, default in [("runs", 1), ("transport", "http"), ("framing", "length"), ("page_changes", False), ("workers", 1)]:
        yield from changed(lambda other, name=name, default=default: setattr(other, name, default))
    plain = Step()
    for number in range(len(trial.steps)):
        for one in fields(Step):
            yield from changed(lambda other, number=number, one=one: setattr(other.steps[number], one.name, getattr(plain, one.name)))


def drop_job(trial: Trial, number: int) -> None:
    trial.jobs.pop(number)
    trial.gestures = [
        Gesture(one.run, one.job - (one.job > number), one.kind, one.urls) for one in trial.gestures if one.job != number
    ]


def describe(trial: Trial) -> Iterator[str]:
    yield f"over {trial.transport}, chunks of {trial.chunk_size}, workers: {trial.workers}, runs before the server turns honest: {trial.runs}"
    for resource in trial.resources:
        for number, version in enumerate(resource.versions):
            since = f" from request {resource.switches[number - 1]} on" if number else ""
            yield f"{resource.url}{since}: {version.size} bytes, ETag {version.etag}, Last-Modified {version.modified}"
    for way in trial.ways:
        targets = [way.targets[0]] + [f"from request {switch} on {target}" for switch, target in zip(way.switches, way.targets[1:])]
        yield f"{way.url}: {way.status} to {', '.join(targets)}{', signed anew each time' if way.signs else ''}"
    for number, job in enumerate(trial.jobs):
        yield f"job {number}: {', '.join(words_of_job(job))}"
    for number, step in enumerate(trial.steps):
        yield f"request {number}: {words(step)}"
    yield "then the same again" if trial.repeats else f"then all right{', chunked' if trial.framing == 'chunked' else ''}"
    for gesture in trial.gestures:
        yield f"after run {gesture.run}: job {gesture.job}: {gesture.kind} {' '.join(gesture.urls)}"


def words_of_job(job: Job) -> Iterator[str]:
    yield from job.urls
    if job.declares_size:
        yield "size"
    if job.declares_crc32:
        yield "crc32"
    if job.connections > 1:
        yield f"connections {job.connections}"
    if job.header:
        yield "header"
    if job.login:
        yield "login"


def words(step: Step) -> str:
    """Only what is wrong."""
    plain = Step()
    wrong = [f"{one.name} {getattr(step, one.name)}" for one in fields(Step) if getattr(step, one.name) != getattr(plain, one.name)]
    return ", ".join(wrong) or "right"


def exchange(log: list[Sent]) -> Iterator[str]:
    """What went over the wire."""
    for answer in log:
        if not answer.status:
            yield f"run {answer.run}: {answer.words}"
            continue
        asked = "all" if answer.asked is None else f"{answer.asked[0]}-{'' if answer.asked[1] is None else answer.asked[1]}"
        yield f"run {answer.run}: {answer.url}, asked for {asked}: {answer.words}: {len(answer.body)} bytes of body, {answer.how}"
