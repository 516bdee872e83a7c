# SPDX-License-Identifier: Apache-2.0
"""Texts to vectors of meaning (.fbin, 256 float32 a row, of unit length), to search in.

usage: text_vectors.py TEXTS OUT.fbin [COLUMN]

TEXTS has one text a line; with COLUMN (1, 2, ...) that column of a table with tabs. A text that
comes again, and so would have the same vector, is left out. Needs the
package wordllama (0.4.0.post1), whose wheel has the vectors of words: nothing is fetched here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import wordllama

BLOCK = 4096  # texts at a time


def read_texts(path: str, column: int | None) -> list[str]:
    """The file's texts, each once, empty ones left out."""
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    cells = (x.split("\t")[column - 1] if column else x for x in lines if x.strip())
    texts = [x for x in dict.fromkeys(cells) if x.strip()]
    if not texts:
        raise ValueError(f"{path}: no texts")
    return texts


def main() -> int:
    """Writes big-ann's layout: uint32 rows, uint32 dims, then the rows."""
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    texts = read_texts(sys.argv[1], int(sys.argv[3]) if len(sys.argv) == 4 else None)
    package = Path(wordllama.__file__).parent  # has the words' pieces in a folder like a cache's
    model = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
    with open(sys.argv[2], "wb") as file:
        for first in range(0, len(texts), BLOCK):
            rows = model.embed(texts[first:first + BLOCK], norm=True).astype("<f4")
            if first == 0:
                np.array([len(texts), rows.shape[1]], "<u4").tofile(file)
            rows.tofile(file)
    print(f"{sys.argv[2]}: {len(texts)} rows, {rows.shape[1]} dims")
    return 0


if __name__ == "__main__":
    sys.exit(main())
