"""Writes PEERS.md from the outcomes of the trials alone."""

import re
import shlex
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path

from server import TRANSPORTS
from tools import IDLE, TOTAL, Spoolrun, Tool
from trial import FALSE, RUNS, TIME_LIMIT, Outcome, Trial, Verdict

Outcomes = dict[Trial, Outcome]

PLAIN = "all that responses can tell"
DECLARED = "only a declared size or checksum tells"
CHANGED = "changed, and no validator tells"


def kind(trial: Trial) -> str:
    """What a client has to know to do it right."""
    if trial.behaviour.is_beyond_validators:
        return CHANGED
    return DECLARED if trial.behaviour.declares else PLAIN


def table(rows: list[list[str]]) -> list[str]:
    """The first row is the header."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return [*lines, ""]


def number(count: int, bad: bool) -> str:
    return f"**{count}**" if bad and count else str(count)


def verdict_table(outcomes: Outcomes, tools: list[Tool], wanted: Callable[[Trial], bool]) -> list[str]:
    header = ["tool", *(("finished: " if one not in (Verdict.FAILED, Verdict.HUNG) else "") + one.value for one in Verdict)]
    rows = [header]
    for tool in tools:
        counts = Counter(one.verdict for trial, one in outcomes.items() if trial.tool is tool and wanted(trial))
        rows.append([tool.name, *(number(counts[one], one in FALSE) for one in Verdict)])
    return table(rows)


def false_table(outcomes: Outcomes, tools: list[Tool], key: Callable[[Trial], str], keys: Iterable[str]) -> list[str]:
    """The number of false finishes, by a property of the trials."""
    totals = Counter((trial.tool.name, key(trial)) for trial in outcomes)
    false = Counter((trial.tool.name, key(trial)) for trial, one in outcomes.items() if one.verdict in FALSE)
    rows = [["", *(tool.name for tool in tools)]]
    for one in keys:
        counts = [(false[tool.name, one], totals[tool.name, one]) for tool in tools]
        rows.append([one, *(f"{number(count, True)} of {total}" if total else "–" for count, total in counts)])
    return table(rows)


def starts(trials: list[Trial]) -> str:
    """The lengths that they began with, over http if all transports agree; for example `half, n-1; https, cut: fresh`.
    """
    by_transport: dict[str, list[str]] = defaultdict(list)
    for trial in sorted(trials, key=lambda trial: -1 if trial.length is None else trial.length):
        by_transport[trial.transport].append(trial.start)
    merged: dict[str, list[str]] = defaultdict(list)
    for transport in TRANSPORTS:
        if by_transport[transport]:
            merged[", ".join(by_transport[transport])].append(transport)
    served = [transport for transport in TRANSPORTS if trials[0].behaviour.ports[transport]]
    return "; ".join(text if over == served else f"{text} ({' and '.join(over)})" for text, over in merged.items())


def escaped(name: str) -> str:
    return name.replace("|", "\\|").replace("*", "\\*")


def falsely_finished(outcomes: Outcomes, tools: list[Tool]) -> list[str]:
    """Each behaviour that deceived a tool: which tool, and from which lengths."""
    found: dict[tuple[str, str], dict[str, list[Trial]]] = defaultdict(lambda: defaultdict(list))
    for trial, one in outcomes.items():
        if one.verdict in FALSE:
            found[trial.behaviour.group, trial.behaviour.name][trial.tool.name].append(trial)
    lines: list[str] = []
    for group in dict.fromkeys(trial.behaviour.group for trial in sorted(outcomes, key=lambda one: one.behaviour.number)):
        rows = [["", *(tool.name for tool in tools)]]
        for (its, name), by_tool in sorted(found.items()):
            if its == group:
                rows.append([escaped(name), *(starts(by_tool[tool.name]) if by_tool[tool.name] else "" for tool in tools)])
        lines += [f"### {group}", "", *(table(rows) if len(rows) > 1 else ["None.", ""])]
    return lines


def left_undone(outcomes: Outcomes, tools: list[Tool]) -> list[str]:
    """What spoolrun did not finish and another tool got right."""
    spoolrun = {
        (trial.behaviour, trial.transport, trial.length): one
        for trial, one in outcomes.items()
        if isinstance(trial.tool, Spoolrun) and one.verdict is not Verdict.RIGHT
    }
    found: dict[tuple[str, str], dict[str, list[Trial]]] = defaultdict(lambda: defaultdict(list))
    for trial, one in outcomes.items():
        own = spoolrun.get((trial.behaviour, trial.transport, trial.length))
        if own is not None and one.verdict is Verdict.RIGHT:
            found[trial.behaviour.name, own.reason or own.verdict.value][trial.tool.name].append(trial)
    rows = [["", "spoolrun", *(tool.name for tool in tools[1:])]]
    for (name, reason), by_tool in sorted(found.items()):
        rows.append([escaped(name), reason, *(starts(by_tool[tool.name]) if by_tool[tool.name] else "" for tool in tools[1:])])
    return table(rows)


def version(program: str) -> str:
    """The version that `program` prints: its first number with a dot."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True)
    found = re.search(r"\d+(\.\d+)+", said.stdout + said.stderr)
    return found[0] if found else "unknown"


def commands(tools: list[Tool], trial: Trial) -> list[str]:
    place = Path("place")
    lines = ["```sh"]
    for tool in tools:
        text = shlex.join([Path(tool.program).name, *tool.command(place, trial.behaviour, "URL")[1:]])
        lines.append(text.replace(tool.ca, "ca.pem"))
    return [*lines, "```"]


def document(outcomes: Outcomes, tools: list[Tool], seconds: float) -> str:
    trials = sorted(outcomes, key=lambda trial: trial.behaviour.number)
    behaviours = {trial.behaviour: None for trial in trials}
    groups = dict.fromkeys(behaviour.group for behaviour in behaviours)
    versions = ", ".join(f"{Path(tool.program).name} {version(tool.program)}" for tool in tools)
    lines = [
        "# Who presents wrong bytes as finished?",
        "",
        f"Written by `make peers` at {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC; nothing in here was put in by hand. "
        f"{versions}. {len(behaviours)} behaviours of a server, the very ones of the tests (`Tests/LyingServers`), over http and https, "
        f"with and without a proper end of the encryption, and from up to six lengths of what was "
        f"there already: {len(outcomes)} trials in {seconds / 60:.0f} minutes.",
        "",
        "What was there is of the version that the server had before; in most behaviours it has another one now, or "
        "lies about it. *n* is that version's length, *n+1* has a byte too many, *fresh* is nothing. *https, cut* ends "
        "each connection without close_notify, where the end matters. A trial runs a tool until it exits with 0: again after each failure that got "
        f"ahead, and after the first in any case, {RUNS} times at most. *Finished* is what the exit status 0 says:",
        "",
        "- *right*: the file has the bytes that the server has now.",
        "- *older, whole*: it has, whole, what the server had before.",
        "- *wrong bytes*: it is neither: two versions joined, an error page, parts of the protocol.",
        "- *incomplete*: the beginning of one of them. *no file*: there is none.",
        "",
        "*Failed* is any other exit status, which nobody can blame where there was nothing to be had. *Hung* was killed after "
        f"{TIME_LIMIT} s; silence may last {IDLE} s and, where there is an option for it, a download {TOTAL} s.",
        "",
        f"## {PLAIN.capitalize()}",
        "",
        "The client has it in its hands to know better. spoolrun's older ones are jobs that have all bytes by their own "
        "journal: it finishes those without a request.",
        "",
        *verdict_table(outcomes, tools, lambda trial: kind(trial) == PLAIN),
        f"## {CHANGED.capitalize()}",
        "",
        "Nothing that the server says shows that it has another file of the same length. What was there can only be "
        "thrown away, or checked against a checksum that was declared: spoolrun's job has one in some of these, and aria2c gets "
        "one (SHA-256) there, too.",
        "",
        *verdict_table(outcomes, tools, lambda trial: kind(trial) == CHANGED),
        f"## {DECLARED.capitalize()}",
        "",
        "A page instead of the file with status 200, a body cut in good order: nobody can know without having been told what is expected. "
        "spoolrun's job says so, aria2c gets the checksum where the job has one; the others have no option for either.",
        "",
        *verdict_table(outcomes, tools, lambda trial: kind(trial) == DECLARED),
        "## Garbage behind a cut",
        "",
        "The connection breaks in the middle of the body, and the last bytes before are an error page of a proxy, or zeros: "
        "the length of what came looks as after any cut.",
        "",
        *verdict_table(outcomes, tools, lambda trial: trial.behaviour.name.startswith("breaks off with")),
        "## Falsely finished, by kind of lie",
        "",
        "Wrong bytes, incomplete or no file, of all trials.",
        "",
        *false_table(outcomes, tools, lambda trial: trial.behaviour.group, groups),
        "## Falsely finished, by transport",
        "",
        *false_table(outcomes, tools, lambda trial: trial.transport, TRANSPORTS),
        "## Falsely finished, by what was there",
        "",
        *false_table(outcomes, tools, lambda trial: trial.start, ["fresh", "1", "half", "n-1", "n", "n+1"]),
        "## What spoolrun leaves undone and another gets right",
        "",
        "From these lengths the others ended with the right bytes, and spoolrun with the failure that its column names. "
        "These responses contradict themselves or the request (an encoding that was not asked for, a length that is no number, "
        "a 206 that nobody asked for, no HTTP at all), have another validator each time or a head without measure: who takes them "
        "guesses, and wrong bytes elsewhere in this document come from the same guesses.",
        "",
        *left_undone(outcomes, tools),
        "## The commands",
        "",
        "axel continues only what its own state file describes, so a real axel was interrupted for that; it has no "
        "lengths from n on; its `.axelrc` makes it wait a second instead of 20 before it connects again. aria2c continues a file without its control file: with one, it counts in blocks of 16 KiB, more "
        "than these files have. wget2's status is 0 after most failures (its issue 309), "
        "which leaves what was there as if it were finished.",
        "",
        *commands(tools, next(trial for trial in trials if not trial.behaviour.declares)),
        "",
        "## Falsely finished, each",
        "",
        "From which lengths; over all transports where none is named.",
        "",
        *falsely_finished(outcomes, tools),
    ]
    return "\n".join(lines).rstrip() + "\n"
