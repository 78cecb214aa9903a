"""The table of what came out, in Markdown: each file system has a section, and a run replaces only the sections of the
file systems that it has tried."""

import re
import subprocess
import time
from pathlib import Path

from filesystems import SharedFileSystem
from scenarios import Outcome

HEAD = """# Several hosts on one spool

Written by `make hosts` ([TESTING.md](../../docs/TESTING.md)). Each host is a set of namespaces with its own network, host name,
processes, and mount of the spool; all hosts, the file servers and nginx share one machine, so the speeds compare only
with each other. Each job must be done once, with the right bytes and a receipt.
"""
SECTION = re.compile(r"^## (.+)\n(?:(?!^## ).*\n)*", re.MULTILINE)


def table(outcomes: list[Outcome]) -> list[str]:
    columns = list(outcomes[0].columns)
    lines = [f"| | {' | '.join(columns)} | problems |", "|---" * (len(columns) + 2) + "|"]
    for outcome in outcomes:
        cells = [outcome.columns.get(column, "") for column in columns]
        found = "; ".join(outcome.problems).replace("\n", " ").replace("|", "/") or "none"
        lines.append(f"| {outcome.scenario} | {' | '.join(cells)} | {found} |")
    return [*lines, ""]


def section(system: SharedFileSystem, version: str, lease: int, outcomes: list[Outcome]) -> str:
    lines = [f"## {system.name}", "", f"{version}; {time.strftime('%Y-%m-%d', time.gmtime())}."]
    if system.options:
        lines[-1] += f" Options: `{system.options}`."
    lines.append("")
    groups: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.scenario != "doctor":
            groups.setdefault(tuple(outcome.columns), []).append(outcome)
    for columns, group in groups.items():
        if "soon after another" in columns:
            lines += ["Seconds until a job starts that another host has dropped:", ""]
        if "in hand" in columns:
            lines += [f"Faults on one of three hosts, with a lease of {lease} s:", ""]
        lines += table(group)
    for outcome in outcomes:
        if outcome.scenario == "doctor":
            lines += ["`spoolrun doctor --peer`:", "", *(f"    {line}" for line in outcome.columns["says"].splitlines()), ""]
            lines += [*(f"Problem: {problem}" for problem in outcome.problems)]
    return "\n".join(lines).rstrip() + "\n\n"


def write(file: Path, name: str, text: str) -> None:
    """Replaces or adds the section of a file system."""
    old = file.read_text() if file.exists() else HEAD + "\n"
    begin = old.find("## ")
    sections = {found[1]: found[0] for found in SECTION.finditer(old[begin:])} if begin >= 0 else {}
    sections[name] = text
    file.write_text(HEAD + "\n" + "\n\n".join(sections[key].strip() for key in sorted(sections)) + "\n")


def version(package: str) -> str:
    asked = ["dpkg-query", "--show", "--showformat=${Package} ${Version}", package]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout or package
