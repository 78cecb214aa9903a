"""Runs the operator's recipe of contrib/README.md in a fresh machine until there is a mail and an alert, and then the
commands for a team, with users and sudo."""

import json
import re
from pathlib import Path

from machine import Machine, Root, run, wait

PROGRAM = "/usr/local/bin/spoolrun-team"


def blocks(section: str) -> list[list[str]]:
    """The commands of a section, in the blocks in which they stand."""
    text = Path("contrib/README.md").read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    return [[line.strip() for line in block.splitlines()] for block in re.findall(r"(?:^    .*\n)+", text, re.M)]


def commands() -> tuple[list[str], str]:
    """The commands, and the one that makes a job fail."""
    recipe, [failing] = blocks("From the package to a mail and an alert")
    assert len(recipe) <= 10, recipe
    return recipe, failing


def prepare(root: Root, package: Path):
    """The machine has no network, so what the recipe installs is fetched before."""
    root.put(package, "/root/spoolrun_0_amd64.deb")
    for line in (commands()[0][0], blocks("A team")[0][0]):
        root.chroot("sh", "-euc", "cd /root; " + line.replace("apt-get", "apt-get --download-only"))


def play(machine: Machine) -> str:
    """the operator's recipe comes to a mail and an alert"""
    recipe, failing = commands()
    # One shell, as `cd` lasts; a command that fails ends it.
    machine.run("sh", "-euxc", "\n".join(["cd /root", *recipe]))
    wait("Prometheus is ready", lambda: machine.says("curl", "-s", "http://localhost:9090/-/ready"))
    machine.run("sh", "-euc", failing)
    mail = wait("there is a mail", lambda: machine.says("sh", "-c", "cat /var/mail/*"))
    assert "Subject: spoolrun: no-such-file failed: http-404" in mail, mail
    alert = wait("the alert is pending", lambda: alerts(machine).get("SpoolrunJobsFailed"))
    assert alert == "pending", alert
    # Without the quarter of an hour that it waits.
    machine.run("sh", "-euc", "sed -i 's/for: 15m/for: 1s/' /etc/prometheus/spoolrun.yml; systemctl restart prometheus")
    wait("the alert fires", lambda: alerts(machine).get("SpoolrunJobsFailed") == "firing")
    machine.run("spoolrun", "cancel", "--spool", "/var/spool/spoolrun", "no-such-file")
    wait("the alert ends", lambda: alerts(machine) == {})
    return f"{len(recipe)} commands, then {mail.count('Subject: ')} mail, SpoolrunJobsFailed fires and ends"


def team(machine: Machine) -> str:
    """members of a team see and steer their own jobs, by sudo"""
    machine.run("sh", "-euxc", "\n".join(blocks("A team")[0]))
    for user, groups in (("alice", "users"), ("bob", "users"), ("mallory", "")):
        machine.run("useradd", "--create-home", "--groups", groups, user)

    def of(user: str, *words: str) -> list[str]:
        return machine.inside("runuser", "-u", user, "--", *words)

    run(of("alice", PROGRAM, "add", "http://localhost:9090/-/ready?key=s3cret"))
    wait("alice's is done", lambda: re.search(r"(?m)^done +ready$", run(of("alice", PROGRAM, "status"))))
    run(of("bob", PROGRAM, "add", "http://localhost:9090/no-such-file"))
    wait("bob's has failed", lambda: "http-404" in run(of("bob", PROGRAM, "status", "no-such-file")))
    said = run(of("bob", PROGRAM, "status"))
    assert "failed" in said and "ready" not in said, said
    # The group reads the file, and others neither read nor drop anything.
    file = "/var/spool/spoolrun/files/alice/ready"
    assert "Ready" in run(of("bob", "cat", file))
    for words in (["cat", file], [PROGRAM, "status"], [PROGRAM, "add", "http://localhost:9090/x"]):
        try:
            said = run(of("mallory", *words))
        except AssertionError:
            continue
        raise AssertionError(f"mallory: {words}: {said}")
    run(of("bob", PROGRAM, "cancel", "no-such-file"))
    # sudo may have said that the machine's name has no address.
    assert "no-such-file" not in run(of("bob", PROGRAM, "status"))
    return "alice and bob have their own, mallory has nothing"


def alerts(machine: Machine) -> dict[str, str]:
    """The state of each alert that is not quiet."""
    said = machine.says("curl", "-s", "http://localhost:9090/api/v1/alerts")
    try:
        return {alert["labels"]["alertname"]: alert["state"] for alert in json.loads(said)["data"]["alerts"]}
    except ValueError:
        return {"": said}
