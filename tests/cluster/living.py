# SPDX-License-Identifier: Apache-2.0
"""Random histories of an index against a model of a few lines: rows are appended, deleted and compacted, commands are
killed at a random rename or moment, and after each the index must be of the old or of the new generation, verify, and
answer what brute force over the rows of the model does, over all and over some (--allow).

Numbers are small integers, and searches that are compared with the model refine all rows: their values are exact. What
codes alone answer is compared with an index made anew with the same frame.

usage: living.py PROGRAM FAULTS_PROGRAM FOLDER FIRST COUNT     FAULTS_PROGRAM "": kills by time alone
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

import numpy

DIMS, K, FIRST_ROWS = 16, 5, 150
CODES = [["--codec", "saq", "--bits", "2"], ["--codec", "saq", "--bits", "1", "--lists", "5", "--calibrate", "off"],
         ["--codec", "saq", "--bits", "2", "--lists", "5", "--calibrate", "off", "--copy-vectors"],
         ["--codec", "pq", "--copy-vectors"], ["--codec", "raw"], ["--codec", "sq8", "--copy-vectors"],
         ["--codec", "raw", "--copy-vectors"]]


class History:
    def __init__(self, program, faulty, folder, seed):
        self.program, self.faulty, self.folder = program, faulty, folder
        self.random, self.numbers = random.Random(seed), numpy.random.default_rng(seed)
        self.codes = self.random.choice(CODES)
        self.type = numpy.uint8 if "raw" in self.codes else numpy.float32
        self.has_ids = self.random.random() < 0.5
        self.rows = numpy.empty((0, DIMS), self.type)
        self.ids = numpy.empty(0, numpy.int64)
        self.is_live = numpy.empty(0, bool)
        self.num_files = self.num_kills = self.next_id = 0
        self.queries = self.numbers.integers(0, 8, (4, DIMS)).astype(self.type)
        self.save("queries", self.queries)
        self.made = None

    def save(self, name, array):
        numpy.save(self.folder / f"{name}.npy", array)
        return f"{name}.npy"

    def draw(self, count):
        """Rows of which some are copies, and their ids, which leave gaps."""
        rows = self.numbers.integers(0, 8, (count, DIMS)).astype(self.type)
        rows[count // 2:count // 2 + count // 5] = rows[:count // 5]
        ids = self.next_id + self.numbers.permutation(numpy.arange(count) * 3)
        self.next_id += 3 * count
        return rows, ids

    def run(self, *words, fault=None, kill_after=None):
        command = [self.faulty if fault else self.program, *words, "--quiet", "--threads", "1"]
        environment = dict(os.environ, BITSWEEP_JOURNAL_SECONDS="0")
        if fault:
            environment["BITSWEEP_FAIL"] = fault
        with subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            if kill_after is not None:
                time.sleep(kill_after)
                process.kill()
            out, errors = process.communicate()
        return process.returncode, out, errors

    def do(self, *words):
        code, out, errors = self.run(*words)
        assert code == 0, f"{' '.join(words)}: {code}: {errors}"
        return out

    def generation(self):
        code, out, errors = self.run("info", "i", "--json")
        assert code == 0, errors
        return json.loads(out)["generation"] if "generation" in json.loads(out) else 0

    def change(self, words, adopt):
        """Runs a command that makes a generation, killed perhaps; adopt() is what it does to the model."""
        before = self.generation()
        while self.random.random() < 0.4:
            self.num_kills += 1
            words_now = words + (["--resume"] if words[0] != "delete" and self.random.random() < 0.5 else [])
            if self.faulty and self.random.random() < 0.7:
                code, _, errors = self.run(*words_now, fault=f"rename:{self.random.randint(1, 9)}:kill")
            else:
                code, _, errors = self.run(*words_now, kill_after=self.random.random() * 0.04)
            assert code in (0, -9), f"{' '.join(words_now)}: {code}: {errors}"
            if self.generation() == before + 1:
                return adopt()
            assert code == -9 and self.generation() == before
            self.compare()
        self.do(*words, *(["--resume"] if words[0] != "delete" and self.random.random() < 0.3 else []))
        assert self.generation() == before + 1
        return adopt()

    # ---- what happens ----

    def encode(self):
        rows, ids = self.draw(FIRST_ROWS)
        words = ["--ids", self.save("ids0", ids)] if self.has_ids else []
        self.do("encode", "--base", self.save("rows0", rows), "--metric", "l2", *self.codes, "--shards",
                str(self.random.randint(1, 3)), "--index", "i", "--seed", "5", *words)
        self.add(rows, ids)

    def add(self, rows, ids):
        self.rows = numpy.concatenate([self.rows, rows])
        self.ids = numpy.concatenate([self.ids, ids])
        self.is_live = numpy.concatenate([self.is_live, numpy.ones(len(rows), bool)])

    def append(self):
        count, skip = self.random.randint(1, 60), self.random.randint(0, 9)
        rows, ids = self.draw(count)
        self.num_files += 1
        unused = self.draw(skip)[0]
        file = self.save(f"rows{self.num_files}", numpy.concatenate([unused, rows]))
        words = ["append", "--index", "i", "--base", file, "--rows", f"{skip}:", "--shards",
                 str(self.random.randint(1, min(count, 2))), "--keep", str(self.random.randint(0, 2))]
        if self.has_ids:
            words += ["--ids", self.save(f"ids{self.num_files}", ids)]
        if self.random.random() < 0.2:
            words.append("--copy-vectors")
        self.change(words, lambda: self.add(rows, ids))

    def delete(self):
        live = numpy.flatnonzero(self.is_live)
        gone = self.numbers.choice(live, self.random.randint(1, max(1, len(live) // 4)), replace=False)
        if self.random.random() < 0.4:
            gone = numpy.arange(gone[0], min(gone[0] + 40, len(self.rows)))
        if len(gone) >= len(live):
            return
        by_ids = self.has_ids and self.random.random() < 0.5
        if by_ids:
            gone = gone[self.is_live[gone]]
            words = ["--ids", self.save("gone", self.ids[gone].astype(numpy.uint64))]
        elif gone[-1] - gone[0] == len(gone) - 1 and self.random.random() < 0.5:
            words = ["--rows", f"{gone[0]}:{gone[-1] + 1}"]
        else:
            (self.folder / "gone.txt").write_text("\n".join(map(str, gone)) + "\n", encoding="ascii")
            words = ["--rows", "gone.txt"]

        def adopt():
            self.is_live[gone] = False
        self.change(["delete", "--index", "i", *words], adopt)

    def compact(self):
        def adopt():
            self.rows, self.ids = self.rows[self.is_live], self.ids[self.is_live]
            self.is_live = numpy.ones(len(self.rows), bool)
        self.change(["compact", "i", "--shards", str(self.random.randint(0, 3)), "--keep",
                     str(self.random.randint(0, 1))], adopt)

    # ---- what must be so ----

    def search(self, index, oversample, *words):
        lists = ["--probe", "all"] if "--lists" in self.codes else []
        self.do("search", "--index", index, "--queries", "queries.npy", "--k", str(K), "--oversample", str(oversample),
                "--out", "answer", "--force", *lists, *words)
        data = (self.folder / "answer").read_bytes()
        is_wide = len(data) == 16 + len(self.queries) * K * 12
        head, ids = (16, "<i8") if is_wide else (8, "<i4")
        count = len(self.queries) * K
        ids = numpy.frombuffer(data, ids, count, head)
        values = numpy.frombuffer(data, "<f4", count, head + ids.nbytes)
        return ids.astype(numpy.int64).reshape(-1, K), values.reshape(-1, K)

    def names(self, rows):
        return self.ids[rows] if self.has_ids else rows

    def compare(self):
        """With brute force, over all rows and over some: values, then rows."""
        self.compare_rows(self.is_live)
        allowed = self.numbers.random(len(self.rows)) < 0.4
        self.compare_rows(self.is_live & allowed, "--allow", self.save("allowed", allowed))

    def compare_rows(self, is_found, *words):
        ids, values = self.search("i", 1000, *words)
        live = numpy.flatnonzero(is_found)
        for query, found, its_values in zip(self.queries.astype(float), ids, values):
            distances = ((self.rows[live].astype(float) - query) ** 2).sum(1)
            best = numpy.lexsort((live, distances))[:K]
            expected = numpy.full(K, -1)
            expected[:len(best)] = self.names(live[best])
            assert (found == expected).all(), f"found {found}, expected {expected}"
            assert (its_values[:len(best)] == distances[best].astype(numpy.float32)).all()

    def compare_anew(self):
        """Codes alone, with those of an index that is made anew with the same frame."""
        if self.codes[1] not in ("saq", "pq"):
            return
        live = numpy.flatnonzero(self.is_live)
        words = self.codes[self.codes.index("--lists"):] if "--lists" in self.codes else []
        self.do("encode", "--base", self.save("left", self.rows[live]), "--metric", "l2", "--codec", self.codes[1],
                "--model", "i", "--index", "anew", "--force", "--check", "off", *words)
        ids, values = self.search("i", 1)
        again, its_values = self.search("anew", 1)
        expected = numpy.where(again < 0, -1, self.names(live[again]))
        assert (ids == expected).all() and (values == its_values).all(), f"{ids} is not {expected}"

    def check(self):
        self.do("verify", "i")
        self.compare()

    def play(self):
        self.encode()
        for _ in range(self.random.randint(3, 8)):
            self.random.choices([self.append, self.delete, self.compact], [4, 4, 1])[0]()
            self.check()
        self.compare_anew()
        self.compact()
        self.check()
        self.compare_anew()
        left = sorted(p.name for p in (self.folder / "i").iterdir() if p.name.startswith("part-"))
        assert len(left) <= 64


def main():
    program, faulty, folder, first, count = sys.argv[1:]
    kills = 0
    for seed in range(int(first), int(first) + int(count)):
        place = pathlib.Path(folder) / f"history{seed}"
        place.mkdir()
        history = History(program, faulty, place, seed)
        try:
            history.play()
        except AssertionError as error:
            print(f"history {seed} ({' '.join(history.codes)}): {error}", file=sys.stderr)
            raise
        kills += history.num_kills
        shutil.rmtree(place)
    print(f"{count} histories from {first} on, {kills} kills")


main()
