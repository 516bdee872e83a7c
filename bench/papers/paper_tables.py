# SPDX-License-Identifier: Apache-2.0
"""What the scripts beside share: the program, tables in Markdown."""

import subprocess
import sys


def run(*words):
    """What the program says; it ends the script where it fails."""
    done = subprocess.run(["bitsweep", *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bitsweep {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def table(*heads):
    print("\n|", " | ".join(map(str, heads)), "|\n| --- |", " ".join("---: |" for _ in heads[1:]))


def line(name, *figures):
    print("|", name, "|", " | ".join(x if isinstance(x, str) else f"{x:.4f}" for x in figures), "|", flush=True)
