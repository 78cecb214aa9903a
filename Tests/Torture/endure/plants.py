"""Mistakes that the soak has to find: `soak.py --self-test`."""

import subprocess
from pathlib import Path

# What a problem that shows the mistake says.
LEAKS = {"descriptor": "idle descriptors: ", "memory": "idle anonymous memory: ", "thread": "idle threads: ", "zombie": "zombies: "}
PLANTS = LEAKS | {"payload": "are not what was asked for", "loss": ": lost"}


def planted(plant: str | None, work: Path) -> dict[str, str]:
    """The environment in which a worker leaks."""
    if plant not in LEAKS:
        return {}
    library = work / "plants.so"
    source = Path(__file__).with_name("plants.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library), "PLANT": plant}


def spoil(plant: str | None, spool: Path) -> None:
    """Changes the last byte of a payload, or removes a job."""
    if plant == "payload":
        file = sorted((spool / "files").iterdir())[0]
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif plant == "loss":
        sorted((spool / "done").iterdir())[0].unlink()
