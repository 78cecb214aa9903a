"""Installs the Debian package in fresh roots of Debian 12 and 13 that systemd-nspawn boots, runs jobs by its units,
upgrades it with jobs in flight, also from 0.1, removes and purges it; and plays the steps of the container's recipe. It
needs root, mmdebstrap, systemd-nspawn and a mirror of Debian; what it cannot do it says, and leaves out."""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import container
import recipe
from machine import Machine, Root, Unavailable, base, run
from steps import Steps

SUITES = ["bookworm", "trixie"]
# The last commit of 0.1.0.
FIRST = "3a32085543650c6779b1c0887c27ac52fbafa636"


def program_of_first(build: Path) -> Path | None:
    """0.1's program, which takes some minutes to build the first time."""
    source = build / "0.1"
    program = source / ".build/release/spoolrun"
    if not program.exists():
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir(parents=True)
        with subprocess.Popen(["git", "archive", FIRST], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as archive:
            subprocess.run(["tar", "-C", source, "-x"], stdin=archive.stdout, stderr=subprocess.DEVNULL)
        if archive.returncode != 0 or not shutil.which("swift"):
            return None
        # That commit has none, and its dependencies may have moved on.
        shutil.copy("Package.resolved", source)
        subprocess.run(["make", "-C", source, "all"], check=True, stdout=subprocess.DEVNULL)
    return program


def made(build: Path, place: Path) -> Path:
    """The package, made by scripts/deb."""
    subprocess.run(["scripts/deb", build, place], check=True, stdout=subprocess.DEVNULL)
    return next(place.glob("*.deb"))


def changed(package: Path, place: Path, version: str, program: Path | None = None) -> Path:
    """The package with another version, and perhaps with another program."""
    run(["dpkg-deb", "--raw-extract", str(package), str(place)])
    control = place / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*", f"Version: {version}", control.read_text()))
    if program:
        shutil.copy(program, place / "usr/bin/spoolrun")
        # 0.1 tells systemd nothing.
        for unit in place.glob("**/spoolrun*.service"):
            text = re.sub(r"(?m)^Type=notify$", "Type=exec", unit.read_text())
            unit.write_text(re.sub(r"(?m)^WatchdogSec=.*\n", "", text))
    run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(place), f"{place}.deb"])
    return Path(f"{place}.deb")


def report(part: str, verdict: str, text: str, seconds: float):
    print(f"{part}: {verdict} {text} ({seconds:.0f} s)", flush=True)


def play(part: str, what: str, action) -> bool:
    """Runs a step, and prints how it went."""
    begun = time.monotonic()
    try:
        text = action()
    except Unavailable as reason:
        report(part, "LEFT OUT", f"{what}: {reason}", time.monotonic() - begun)
        return True
    except (AssertionError, OSError) as reason:
        report(part, "FAILED", f"{what}: {reason}", time.monotonic() - begun)
        return False
    report(part, "ok", f"{what}: {text}", time.monotonic() - begun)
    return True


def play_suite(suite: str, packages: dict[str, Path], version: str, place: Path, cache: Path) -> bool:
    begun = time.monotonic()
    try:
        root = Root(base(suite, cache), place / suite)
    except Unavailable as reason:
        report(suite, "LEFT OUT", str(reason), time.monotonic() - begun)
        return True
    for name, file in packages.items():
        root.put(file, f"/root/{name}.deb")
    # The machine has no network, so what the package depends on is fetched before.
    root.chroot("apt-get", "install", "--yes", "--no-install-recommends", "--download-only", "/root/spoolrun.deb")
    with Machine(root) as machine:
        steps = Steps(machine, version)
        methods = [steps.installed, steps.serves, steps.tells, steps.stops, steps.instance, steps.by_path, steps.of_user,
                   steps.upgraded, steps.removed, steps.purged]
        if "spoolrun-0.1" in packages:
            methods.append(steps.from_first)
        else:
            report(suite, "LEFT OUT", "upgrade from 0.1: --no-first, or no commit of 0.1, or no Swift to build it", 0)
        # Each begins where the one before it ended.
        for method in methods:
            if not play(suite, method.__doc__, method):
                print(machine.says("journalctl", "--no-pager", "--lines=60", "--unit=spoolrun*"), flush=True)
                return False
    return play_recipe(suite, packages["spoolrun"], place, cache)


def play_recipe(suite: str, package: Path, place: Path, cache: Path) -> bool:
    root = Root(base(suite, cache), place / f"{suite}-recipe")
    recipe.prepare(root, package)
    with Machine(root) as machine:
        if all(play(suite, step.__doc__, lambda: step(machine)) for step in (recipe.play, recipe.team)):
            return True
        print(machine.says("journalctl", "--no-pager", "--lines=60"), flush=True)
        return False


def main() -> int:
    parser = argparse.ArgumentParser(prog="packages", description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="the folder with release/spoolrun")
    parser.add_argument("--suites", default=",".join(SUITES), help=f"of {', '.join(SUITES)}; default: all")
    parser.add_argument("--no-first", action="store_true", help="leave out the upgrade from 0.1, which may have to be built")
    options = parser.parse_args()
    # So that the machine ends, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    missing = [tool for tool in ("mmdebstrap", "systemd-nspawn", "dpkg-buildpackage") if not shutil.which(tool)]
    if os.geteuid() != 0 or missing:
        print(f"packages: LEFT OUT: needs root{', and '.join(['', *missing])}")
        return 0
    build = options.build.resolve()
    version = subprocess.run([build / "release/spoolrun", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    cache = build / "packages/roots"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        package = made(build, place / "this")
        packages = {"spoolrun": package, "spoolrun-next": changed(package, place / "next", "99")}
        ok = play("package", "made again, it is the same", lambda: same(package, made(build, place / "again")))
        if not options.no_first and (program := program_of_first(build)):
            packages["spoolrun-0.1"] = changed(package, place / "first", "0.1.0", program)
        for suite in options.suites.split(","):
            ok = play_suite(suite, packages, version, place, cache) and ok
        image = Path("contrib/container/Containerfile")
        ok = play("container", "steps of the recipe", lambda: container.play(image, place / "this", place, cache)) and ok
    return 0 if ok else 1


def same(one: Path, other: Path) -> str:
    assert one.read_bytes() == other.read_bytes(), f"{one.name} differs"
    return f"{one.stat().st_size:,} bytes"


if __name__ == "__main__":
    sys.exit(main())
