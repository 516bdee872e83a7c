# SPDX-License-Identifier: Apache-2.0
"""What the package makes of the header is what a compiler makes of it."""

import ast
import ctypes
import inspect
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import bitsweep
from bitsweep import arguments, library
from bitsweep.header import FILE, Header, header


def ask_compiler(questions: list[str]) -> list[int]:
    """What numbers the expressions have in C."""
    lines = "".join(f'printf("%zu\\n", (size_t)({question}));\n' for question in questions)
    program = f'#include <stdio.h>\n#include "{FILE}"\nint main(void)\n{{\n{lines}}}\n'
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "sizes.c")
        source.write_text(program)
        subprocess.run(["cc", "-o", f"{folder}/sizes", str(source)], check=True)
        said = subprocess.run([f"{folder}/sizes"], check=True, capture_output=True, text=True)
    return [int(word) for word in said.stdout.split()]


class InC(unittest.TestCase):
    @unittest.skipUnless(shutil.which("cc"), "no C compiler here")
    def test_layouts(self) -> None:
        expected: dict[str, int] = {}
        for name, struct in header.structs.items():
            expected[f"sizeof(struct {name})"] = ctypes.sizeof(struct)
            for member in header.members[name]:
                field: Any = getattr(struct, member.name)
                expected[f"offsetof(struct {name}, {member.name})"] = field.offset
                expected[f"sizeof(((struct {name} *)0)->{member.name})"] = field.size
        self.assertGreater(len(expected), 200)
        for name, number in header.numbers.items():
            expected[f"BITSWEEP_{name}"] = number
        self.assertEqual(dict(zip(expected, ask_compiler(list(expected)))), expected)

    def test_all_is_found(self) -> None:
        text = FILE.read_text()
        declared = re.findall(r"BITSWEEP_API[^;(]*?(bitsweep_\w+)\(", text)
        self.assertGreater(len(declared), 20)
        self.assertEqual(list(header.functions), declared)
        declared = re.findall(r"^struct (bitsweep_\w+) \{", text, re.MULTILINE)
        self.assertEqual(list(header.structs), declared)
        self.assertRegex(library.SONAME, r"^libbitsweep\.so\.\d+\.\d+$")


class InPython(unittest.TestCase):
    def test_kinds_of_members(self) -> None:
        text = """
struct small {
    /* Both; and no member. */
    const char *a, *b; /* two; "x" */
    uint64_t n,
        m; /* 0: none;
              more */
    struct small *next;
    char text[7];
};
BITSWEEP_API void bitsweep_f(struct small *one, const int64_t *ids,
                             double x, void **out);
"""
        found = Header(text.replace("struct small *next", "double x"))
        members = [(m.name, m.type) for m in found.members["small"]]
        text_type, count_type = ctypes.c_char_p, ctypes.c_uint64
        self.assertEqual(members[:4], [("a", text_type), ("b", text_type), ("n", count_type),
                                       ("m", count_type)])
        self.assertEqual(members[4:], [("x", ctypes.c_double), ("text", ctypes.c_char * 7)])
        says = [m.says for m in found.members["small"]]
        self.assertEqual(says, ['two; "x"'] * 2 + ["0: none; more"] * 2 + ["", ""])
        address = ctypes.c_void_p
        self.assertEqual(found.functions["bitsweep_f"],
                         (None, [ctypes.POINTER(found.structs["small"]), address, ctypes.c_double,
                                 address]))

    def test_arguments(self) -> None:
        """Every setting of the header is an argument, with its default and its text."""
        calls: list[Any] = [("encode", bitsweep.Index.encode), ("open", bitsweep.Index.__init__)]
        calls += [("search", bitsweep.Index.search), ("knn", bitsweep.knn)]
        calls += [("calibrate", bitsweep.Index.calibrate), ("change", bitsweep.Index.append)]
        for call, function in calls:
            parameters = {**inspect.signature(function).parameters}
            if call == "search":  # some are of one of the two alone
                parameters.update(inspect.signature(bitsweep.Index.range_search).parameters)
            for name, setting in arguments.settings_of(call).items():
                self.assertIn(name, parameters)
                self.assertEqual("_settings" in setting.says or "BITSWEEP_" in setting.says, False)
        parameters = inspect.signature(bitsweep.Index.encode).parameters
        self.assertNotIn("settings", parameters)
        self.assertEqual((parameters["bits"].default, parameters["force"].default), (None, False))
        self.assertEqual(inspect.signature(bitsweep.Index.search).parameters["k"].default, 10)
        self.assertTrue(inspect.signature(bitsweep.Index).parameters["checked"].default)
        text = " ".join((bitsweep.Index.encode.__doc__ or "").split())
        self.assertIn('calibrate: with lists: rows that are tried as queries', text)
        self.assertIn('"none": no table', text)
        words = arguments.settings_of("search")["probe"].words
        self.assertEqual(words, {"all": header.numbers["ALL"]})

    def test_stubs(self) -> None:
        """What type checkers read has the same arguments as what runs."""
        script = Path(__file__).parents[1] / "stubs.py"
        found: dict[str, list[str]] = {}
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-I", str(script), folder], check=True)
            for name in ("index", "vectors"):
                for node in ast.walk(ast.parse(Path(folder, f"{name}.pyi").read_text())):
                    if isinstance(node, ast.FunctionDef):
                        every = [*node.args.args, *node.args.kwonlyargs]
                        found.setdefault(node.name, [one.arg for one in every])
        Index = bitsweep.Index
        every_one = (Index.__init__, Index.search, Index.range_search, Index.calibrate,
                     Index.append, bitsweep.knn)
        for function in every_one:
            names = list(inspect.signature(function).parameters)
            self.assertEqual(found[function.__name__], names)
        self.assertEqual(found["encode"][1:], list(inspect.signature(Index.encode).parameters))


if __name__ == "__main__":
    unittest.main()
