# SPDX-License-Identifier: Apache-2.0
"""`python -m bitsweep` and the script `bitsweep` of the package: the program takes this one's place."""

import os
import sys

from .library import Error
from .program import program


def main() -> None:
    try:
        name = program()
        os.execv(name, [name, *sys.argv[1:]])
    except (Error, OSError) as error:
        sys.exit(f"bitsweep: {error}")


if __name__ == "__main__":
    main()
