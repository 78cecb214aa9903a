"""The figures as Markdown."""

import shlex
from pathlib import Path
from datetime import datetime, timezone

from measuring import Series
from row import Bench, Goal, Result

MIB = 1 << 20


def table(rows: list[list[str]]) -> list[str]:
    """The first row is the header."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return lines


def figure(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    text = f"{value:.2f}" if unit in ("×", "s") else f"{value:.1f}" if unit else f"{value:g}"
    return f"{text} {unit}".strip()


def goal_row(row: str, goal: Goal) -> list[str]:
    sign = "≥" if goal.at_least else "≤"
    verdict = "–" if goal.measured is None else "yes" if goal.is_met else "**no**"
    return [row, goal.text, figure(goal.measured, goal.unit), f"{sign} {figure(goal.limit, goal.unit)}", verdict]


def series_rows(result: Result) -> list[list[str]]:
    has_cpu = any(cost.cpu for one in result.series.values() for cost in one.costs)
    header = ["", "wall, median", "shortest to longest", "spoolrun takes"]
    header += [f"{result.rates[0]}"] if result.rates else []
    header += ["CPU, median", "CPU of the machine", "peak resident"] if has_cpu else []
    rows = [header]
    for name, one in result.series.items():
        if one.failure or not one.costs:
            rows.append([name, "failed: " + " ".join((one.failure or "not run").split()).replace("|", "\\|")])
            rows[-1] += [""] * (len(header) - 2)
            continue
        low, high = one.spread
        ratio = result.ratio("spoolrun", name) if "spoolrun" in result.series else None
        cells = [name, seconds(one.wall), f"{seconds(low)} to {seconds(high)}", figure(ratio, "×")]
        cells += [f"{result.rates[1] / one.wall:,.0f}"] if result.rates else []
        cells += [seconds(one.median("cpu")), seconds(one.median("machine")), f"{one.median('rss') / MIB:.1f} MiB"] if has_cpu else []
        rows.append(cells)
    return rows


def seconds(value: float) -> str:
    return f"{value * 1000:.2f} ms" if value < 0.1 else f"{value:.2f} s"


def commands(series: dict[str, Series], bench: Bench) -> list[str]:
    """The commands, without this machine's directories and ports."""
    lines = ["```sh"]
    for one in series.values():
        text = shlex.join(one.command)
        for long, short in (
            (str(bench.program), "spoolrun"),
            (str(Path(__file__).resolve().parent.parent / ".build/peers/python/bin/python"), "python"),
            (str(bench.scratch.root) + "/", ""),
            (bench.server.https, "https://server"),
            (bench.server.http, "http://server"),
        ):
            text = text.replace(long, short)
        lines.append(text)
    return [*lines, "```"]


def section(name: str, result: Result, bench: Bench) -> list[str]:
    lines = ["", f"## {name}", "", result.title + ".", ""]
    if result.series:
        lines += [*table(series_rows(result)), ""]
    if result.table:
        lines += [*table(result.table), ""]
    for note in result.notes:
        lines += [note, ""]
    if result.series:
        lines += commands(result.series, bench)
    return lines[:-1] if lines[-1] == "" else lines


def updated(text: str, results: dict[str, Result], bench: Bench, machine: list[str]) -> str:
    """A document with these rows instead of its own. Each says when it was measured, and with which versions."""
    head, *old = text.removesuffix("\n").split("\n\n## ")
    sections = {section.split("\n", 1)[0]: section for section in old}
    versions = next(line for line in machine if line.startswith("Versions: "))
    for name, result in results.items():
        when = f"Measured at {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC with {versions.removeprefix('Versions: ')}."
        lines = section(name, result, bench)
        sections[name] = "\n".join([*lines[1:4], "", when, *lines[4:]]).removeprefix("## ")
        # In its place in the table of goals, or at its end.
        goals = ["| " + " | ".join(goal_row(name, goal)) + " |" for goal in result.goals]
        rows = head.split("\n")
        places = [place for place, row in enumerate(rows) if row.startswith(f"| {name} |")]
        start, end = (places[0], places[-1] + 1) if places else (len(rows), len(rows))
        head = "\n".join([*rows[:start], *goals, *rows[end:]])
    return "\n\n## ".join([head, *sections.values()]) + "\n"


def document(results: dict[str, Result], bench: Bench, machine: list[str]) -> str:
    """The whole of RESULTS.md."""
    extent = "**Quick mode: smaller sizes and fewer runs than the goals are meant for.** " if bench.quick else ""
    lines = [
        "# Results",
        "",
        f"{extent}Written by `make bench` at {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC; nothing in here was put in "
        f"by hand. All on one machine, over the loopback from nginx, {bench.runs} runs of each in turn, medians. "
        "None of the others checks a CRC-32. Only aria2c flushes what it fetched, none its name. spoolrun does all of "
        "that in every figure.",
        "",
        *[f"- {line}" for line in machine],
        "",
    ]
    goals = [goal_row(name, goal) for name, result in results.items() for goal in result.goals]
    if goals:
        lines += table([["row", "spoolrun beside", "measured", "goal", "met"], *goals])
    for name, result in results.items():
        lines += section(name, result, bench)
    return "\n".join(lines) + "\n"
