"""What the rigs have in common: options, and the directory that a run works in."""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def options_parser(rig: str, doc: str | None, seed: str | None = None) -> argparse.ArgumentParser:
    """A parser with `--program` and `--keep`, and with `--seed` where `seed` is the help text for it."""
    parser = argparse.ArgumentParser(prog=rig, description=doc)
    parser.add_argument("--program", type=Path, required=True, help="the spoolrun to try")
    if seed:
        parser.add_argument("--seed", type=int, default=1, help=f"{seed}; default: %(default)s")
    parser.add_argument("--keep", type=Path, help="work in this directory, which must not exist, and leave all of it for inspection")
    return parser


@contextmanager
def workplace(keep: Path | None, prefix: str) -> Iterator[Path]:
    """The directory `keep`, which is made and left for inspection; otherwise a directory that is removed with the
    context."""
    if keep:
        keep.mkdir()
        yield keep.resolve()
    else:
        with tempfile.TemporaryDirectory(prefix=prefix) as work:
            yield Path(work).resolve()
