# SPDX-License-Identifier: Apache-2.0
"""The structs and functions of bitsweep/library.py are those of the header."""

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from bitsweep import library

HEADER = Path(
    os.environ.get("BITSWEEP_HEADER", Path(__file__).parents[2] / "coordinator" / "bitsweep.h")
)
STRUCTS = [
    library.ErrorStruct,
    library.Rows,
    library.EncodeSettings,
    library.IndexInfo,
    library.OpenSettings,
    library.SearchSettings,
    library.SearchStats,
    library.CalibrateSettings,
    library.CalibrateStats,
    library.KnnSettings,
]


def ask_compiler(questions: list[str]) -> list[int]:
    """What numbers the expressions have in C."""
    lines = "".join(f'printf("%zu\\n", (size_t)({question}));\n' for question in questions)
    program = f'#include <stdio.h>\n#include "{HEADER}"\nint main(void)\n{{\n{lines}}}\n'
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "sizes.c")
        source.write_text(program)
        subprocess.run(["cc", "-o", f"{folder}/sizes", str(source)], check=True)
        said = subprocess.run([f"{folder}/sizes"], check=True, capture_output=True, text=True)
    return [int(word) for word in said.stdout.split()]


@unittest.skipUnless(HEADER.exists(), "no header here")
class Header(unittest.TestCase):
    @unittest.skipUnless(shutil.which("cc"), "no C compiler here")
    def test_layouts(self) -> None:
        questions, expected = [], []
        for struct in STRUCTS:
            questions.append(f"sizeof(struct {struct.c_name})")
            expected.append(ctypes.sizeof(struct))
            for name, *_ in struct._fields_:
                member = getattr(struct, name)
                questions.append(f"offsetof(struct {struct.c_name}, {name})")
                expected.append(member.offset)
                questions.append(f"sizeof((({struct_type(struct)} *)0)->{name})")
                expected.append(member.size)
        for name in ("AUTO", "ALL", "NONE"):
            questions.append(f"BITSWEEP_{name}")
            expected.append(getattr(library, name))
        for name in ("USAGE", "STOPPED"):
            questions.append(f"BITSWEEP_ERROR_{name}")
            expected.append(getattr(library, name))
        found = dict(zip(questions, ask_compiler(questions)))
        self.assertEqual(found, dict(zip(questions, expected)))

    def test_soname(self) -> None:
        words = re.findall(r"VERSION_(?:MAJOR|MINOR) (\d+)", HEADER.read_text())
        self.assertEqual(library.SONAME, "libbitsweep.so." + ".".join(words))

    def test_functions(self) -> None:
        declared = re.findall(r"BITSWEEP_API[^;(]*?(bitsweep_\w+)\(", HEADER.read_text())
        self.assertGreater(len(declared), 20)
        self.assertEqual(sorted(library.FUNCTIONS), sorted(declared))

    def test_all_structs(self) -> None:
        declared = re.findall(r"^struct (bitsweep_\w+) \{", HEADER.read_text(), re.MULTILINE)
        self.assertEqual(sorted(struct.c_name for struct in STRUCTS), sorted(declared))


def struct_type(struct: type) -> str:
    return f"struct {struct.c_name}"


if __name__ == "__main__":
    unittest.main()
