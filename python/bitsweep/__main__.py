# SPDX-License-Identifier: Apache-2.0
"""`python -m bitsweep`: the program takes this one's place."""

from bitsweep_program import main

if __name__ == "__main__":
    main()
