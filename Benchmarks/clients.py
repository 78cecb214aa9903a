"""Command lines of spoolrun and of the other tools, each with the options that make it fastest here.

No other tool checks a CRC-32. Only aria2c flushes the data (fsync(2)), and none flushes the name of the file. spoolrun
does all of that in every row.
"""

import filecmp
import os
import shlex
import subprocess
from pathlib import Path

from measuring import Candidate, Failed
from scratch import Scratch

# Without the control file, which aria2c would flush for each download, and without a summary. Preallocation was no
# faster.
ARIA2 = ["aria2c", "--quiet", "--file-allocation=none", "--auto-save-interval=0", "--summary-interval=0"]
CURL = ["curl", "--silent", "--show-error", "--fail"]
WGET2 = ["wget2", "--quiet", "--no-config"]
CAREFUL = "curl -Z, then sync -f, then rhash --check"


def expect_same(source: Path, output: Path, thorough: bool) -> None:
    """Fails unless `output` has the size of `source`; with `thorough`, also its bytes."""
    if not output.exists() or output.stat().st_size != source.stat().st_size:
        raise Failed(f"{output.name} is missing or has another size than what was served")
    if thorough and not filecmp.cmp(source, output, shallow=False):
        raise Failed(f"{output.name} is not what was served")


class Clients:
    """Makes candidates; `program` is spoolrun's."""

    def __init__(self, program: Path, scratch: Scratch):
        self.program = str(program)
        self.scratch = scratch
        self.spool = scratch.root / "spool"
        self.out = scratch.root / "out"

    def fresh(self) -> None:
        """An empty output directory and no spool: the same start for all."""
        self.scratch.fresh("spool")
        self.scratch.fresh("out")

    # MARK: spoolrun

    def drop(self, urls: list[str]) -> None:
        """A fresh spool with a job of one line for each URL."""
        self.fresh()
        subprocess.run([self.program, "init", self.spool], check=True)
        new = self.spool / "new"
        for number, url in enumerate(urls):
            with open(new / f"job-{number:07}", "w") as job:
                job.write(url + "\n")

    def expect_done(self, count: int) -> None:
        done = len(os.listdir(self.spool / "done"))
        if done != count:
            raise Failed(f"{done} of {count} jobs are done")

    def spoolrun(self, urls: list[str], sources: list[Path], *options: str, name: str = "spoolrun") -> Candidate:
        def check(thorough: bool) -> None:
            self.expect_done(len(urls))
            for source in sources:
                expect_same(source, self.spool / "files" / source.name, thorough)

        command = [self.program, "--once", *options, str(self.spool)]
        return Candidate(name, command, lambda: self.drop(urls), check)

    # MARK: the others

    @staticmethod
    def trust(authority: str) -> dict[str, list[str]]:
        """The options with which each tool trusts a server's certificate; axel knows none for that."""
        long = [f"--ca-certificate={authority}"]
        short = ["--cacert", authority]
        return {"spoolrun": short, "curl": short, "wget": long, "wget2": long, "aria2c": long, "axel": ["--insecure"]}

    def one(self, name: str, source: Path, *command: str) -> Candidate:
        """A command that leaves a copy of `source` in the output directory."""
        return Candidate(
            name, list(command), self.fresh, lambda thorough: expect_same(source, self.out / source.name, thorough)
        )

    def curl(self, url: str, source: Path, *options: str) -> Candidate:
        return self.one("curl", source, *CURL, *options, "--output", str(self.out / source.name), url)

    def curl_then_rhash(self, url: str, source: Path, *options: str) -> Candidate:
        """Commands that check curl's download."""
        output = str(self.out / source.name)
        script = f"{' '.join([*CURL, *options])} --output '{output}' {url} && rhash --crc32 '{output}'"
        return self.one("curl, then rhash --crc32", source, "sh", "-c", script)

    def curl_then_sync(self, url: str, source: Path, *options: str) -> Candidate:
        """As durable as spoolrun's, but for the name."""
        output = str(self.out / source.name)
        script = f"{' '.join([*CURL, *options])} --output '{output}' {url} && sync -f '{output}'"
        return self.one("curl, then sync -f", source, "sh", "-c", script)

    def wget2_then_sync(self, url: str, source: Path, *options: str) -> Candidate:
        output = str(self.out / source.name)
        script = f"{' '.join([*WGET2, *options])} --output-document='{output}' {url} && sync -f '{output}'"
        return self.one("wget2, then sync -f", source, "sh", "-c", script)

    def wget2(self, url: str, source: Path, *options: str) -> Candidate:
        return self.one("wget2", source, *WGET2, *options, f"--output-document={self.out / source.name}", url)

    def wget(self, url: str, source: Path, *options: str) -> Candidate:
        return self.one("wget", source, "wget", "--quiet", *options, "--output-document", str(self.out / source.name), url)

    def aria2(self, url: str, source: Path, connections: int, *options: str) -> Candidate:
        split = [*options, f"-x{connections}", f"-s{connections}", "-k1M"]
        return self.one(f"aria2c -x{connections}", source, *ARIA2, *split, "-d", str(self.out), "-o", source.name, url)

    def axel(self, url: str, source: Path, connections: int, *options: str) -> Candidate:
        output = str(self.out / source.name)
        return self.one(f"axel -n{connections}", source, "axel", "-q", *options, f"-n{connections}", "-o", output, url)

    def many(self, base: str, names: list[str], sources: list[Path], parallel: int | None, trust: dict[str, list[str]] | None = None) -> list[Candidate]:
        """curl -Z, wget2, aria2c and the careful script, each fetching all of `names` below `base`.

        Without `parallel`, each fetches as many at once as it does by itself.
        """
        urls = self.scratch.root / "urls"
        urls.write_text("".join(f"{base}/{name}\n" for name in names))
        trust = trust or {}
        pattern = f"{base}/[{names[0]}-{names[-1]}]"
        zed = ["--parallel", "--parallel-immediate", *([] if parallel is None else ["--parallel-max", str(parallel)])]
        commands = {
            "curl -Z": [*CURL, *trust.get("curl", []), "--no-progress-meter", *zed, "--output", f"{self.out}/#1", pattern],
            "wget2": [
                *WGET2, *trust.get("wget2", []), *([] if parallel is None else [f"--max-threads={parallel}"]),
                f"--directory-prefix={self.out}", f"--input-file={urls}",
            ],
            "aria2c": [
                *ARIA2, *trust.get("aria2c", []), *([] if parallel is None else [f"--max-concurrent-downloads={parallel}"]),
                f"--dir={self.out}", f"--input-file={urls}",
            ],
        }

        # What a careful person would script to get what spoolrun promises.
        sums = self.scratch.root / "sums.sfv"
        listed = subprocess.run(["rhash", "--sfv", *names], cwd=sources[0].parent, check=True, capture_output=True)
        sums.write_bytes(listed.stdout)
        careful = f"{shlex.join(commands['curl -Z'])} && sync -f {self.out} && cd {self.out} && rhash --check --skip-ok {sums}"
        commands[CAREFUL] = ["sh", "-c", careful]

        def check(thorough: bool) -> None:
            for source in sources:
                expect_same(source, self.out / source.name, thorough)

        return [Candidate(name, command, self.fresh, check) for name, command in commands.items()]
