"""Where a run works."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def workplace(keep: Path | None, prefix: str) -> Iterator[Path]:
    """`keep`, made here and left for inspection; else a directory that goes with the context."""
    if keep:
        keep.mkdir()
        yield keep.resolve()
    else:
        with tempfile.TemporaryDirectory(prefix=prefix) as work:
            yield Path(work).resolve()
