# SPDX-License-Identifier: Apache-2.0
"""The program `bitsweep`, which a wheel has with it, and the script that starts it.

Beside the package, not in it, so that a command waits for neither NumPy nor the library.
"""

import os
import sys
from pathlib import Path

__all__ = ["find", "main"]


def _is_compiled(file: Path) -> bool:
    """A program, and not the script that pip makes, which starts this."""
    if not (file.is_file() and os.access(file, os.X_OK)):
        return False
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def find() -> str:
    """BITSWEEP_PROGRAM, or that of the wheel, or beside BITSWEEP_LIBRARY, or on the PATH."""
    named = os.environ.get("BITSWEEP_PROGRAM")
    if named:
        return named
    places = [Path(__file__).parent / "bitsweep" / "bin"]
    library = os.environ.get("BITSWEEP_LIBRARY")
    if library:
        places.append(Path(library).resolve().parent)
    for place in places + [Path(name) for name in os.get_exec_path()]:
        if _is_compiled(place / "bitsweep"):
            return str(place / "bitsweep")
    raise FileNotFoundError(
        "the program bitsweep is not here: set BITSWEEP_PROGRAM to it, or PATH to its folder"
    )


def main() -> None:
    try:
        name = find()
        os.execv(name, [name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"bitsweep: {error}")
