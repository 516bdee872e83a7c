# SPDX-License-Identifier: Apache-2.0
"""The program `bitsweep`, for what the library does not have: sweeps and plans, as records."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator, Optional

import bitsweep_program
import numpy.typing as npt

from .arguments import check_names
from .library import IO, Error, NoFile, as_written
from .settings import flag, row_range
from .vectors import File, Vectors, write, write_neighbours

# Kinds of errors by exit codes (common/base/status.h).
_CODES = {2: 1, 65: 3, 70: 9, 74: 4, 75: 8}
_OPTION = re.compile(r"^  --([a-z-]+)", re.MULTILINE)
_OWN = {"base", "queries", "groundtruth", "folder", "help", "json", "launcher", "quiet"}


def program() -> str:
    try:
        return bitsweep_program.find()
    except FileNotFoundError as error:
        raise NoFile(str(error), IO) from None


def _words(options: dict[str, Any]) -> Iterator[str]:
    """Options of a command line: lists with commas, True for a flag alone."""
    for name, value in options.items():
        if value is None or value is False:
            continue
        yield f"--{name.replace('_', '-')}"
        if isinstance(value, (slice, range)):
            first, num = row_range(name, value)
            yield f"{first}:{'' if num is None else first + num}"
        elif isinstance(value, (list, tuple)):
            yield ",".join(map(str, value))
        elif value is not True:
            yield os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else str(value)


def _tell(process: subprocess.Popen[str]) -> str:
    """Shows what a program says of its progress; returns its last line."""
    last = ""
    for line in process.stderr or ():
        if last:
            print(last, file=sys.stderr, flush=True)
        last = line.rstrip("\n")
    return last


def _run(command: str, words: list[str], is_told: bool, own_folder: str = "") -> Any:
    """What a command of the program writes as JSON. An interrupt ends it, too.

    own_folder: of files that the caller knows nothing of, for errors.
    """
    quiet = [] if is_told else ["--quiet"]
    own = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_COMM_", "PMIX_"))}
    with tempfile.TemporaryFile("w+") as out, subprocess.Popen(
        [program(), command, *words, "--json", *quiet],
        stdout=out, stderr=subprocess.PIPE, text=True, errors="replace", env=own,
    ) as process:  # fmt: skip
        try:
            last = _tell(process)
            code = process.wait()
        except BaseException:
            process.terminate()
            raise
        if code:
            said = last.replace("bitsweep: ", "", 1)
            raise Error(as_written(said.replace(own_folder, "")), _CODES.get(code, IO))
        if last and is_told:
            print(last, file=sys.stderr, flush=True)
        out.seek(0)
        return json.load(out)


def _check(command: str, options: dict[str, Any], own: list[str]) -> None:
    """Options that the program does not have are a TypeError, as they are of functions here."""
    words = [program(), command, "--help", "all"]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    known = [name.replace("-", "_") for name in _OPTION.findall(said) if name not in _OWN]
    check_names(command, options, own + [name for name in known if name not in own])


def _as_file(x: Vectors, folder: Path, name: str) -> str:
    if isinstance(x, (str, bytes, os.PathLike)):
        return os.fsdecode(x)
    file = folder / f"{name}.npy"
    write(file, x)
    return str(file)


def sweep(
    x: Vectors,
    queries: Vectors,
    *,
    folder: Optional[File] = None,
    groundtruth: Optional[npt.ArrayLike | File] = None,
    progress: Optional[bool] = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Measures recall and speed over a grid of codes and searches: a record for each point.

    x, queries: arrays or files. groundtruth: ids of the true neighbours, or a file; None: computed.
    folder: keeps indexes, plots and report.html, and may be resumed; None: nothing is kept.
    progress=True: shows on stderr how far it is. Options are those of `bitsweep sweep --help all`,
    with lists as lists: `sweep(x, q, metric="l2", bits=[2, 3, 4], oversample=[1, 5])`.

    The records are what pandas.DataFrame takes: codec, bits, oversample, recall, ...
    """
    _check("sweep", options, ["x", "queries", "folder", "groundtruth", "progress"])
    is_told = flag("progress", progress)
    with tempfile.TemporaryDirectory(prefix="bitsweep-") as name:
        own = Path(name)
        words = ["--base", _as_file(x, own, "x"), "--queries", _as_file(queries, own, "queries")]
        words += ["--folder", os.fsdecode(folder or own / "sweep"), *_words(options)]
        if isinstance(groundtruth, (str, bytes, os.PathLike)):
            words += ["--groundtruth", os.fsdecode(groundtruth)]
        elif groundtruth is not None:
            write_neighbours(own / "truth.ibin", None, groundtruth)
            words += ["--groundtruth", str(own / "truth.ibin")]
        records: list[dict[str, Any]] = _run("sweep", words, is_told, f"{name}/")["rows"]
        return records


def _flat(found: dict[str, Any]) -> dict[str, Any]:
    """Members of members by names with a point between, without lists."""
    flat: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": one for inner, one in _flat(value).items()}
        elif not isinstance(value, list):
            flat[name] = value
    return flat


def plan(rows: int, dims: int, **options: Any) -> list[dict[str, Any]]:
    """Memory, disk, misses and seconds of an index of so many rows, before it is made.

    Options are those of `bitsweep plan --help all`. A record for each number of ranks, as
    pandas.DataFrame takes them: `plan(10**9, 96, bits=3, ranks=[1, 2, 4])`.
    """
    _check("plan", options, ["rows", "dims"])
    found = _run("plan", list(_words({"rows": rows, "dims": dims, **options})), False)
    return [{**_flat(found), **_flat(line)} for line in found["lines"]]
