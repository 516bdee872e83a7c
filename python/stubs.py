# SPDX-License-Identifier: Apache-2.0
"""Writes what modules of the package are to type checkers and editors: with the settings of bitsweep.h as arguments.

usage: stubs.py FOLDER    writes FOLDER/index.pyi and FOLDER/vectors.pyi, of which wheels are made

Modules take settings as **settings, by the decorator `takes` (bitsweep/arguments.py), so that the header is their only
list; running Python sees them all, but a checker that only reads does not. Needs neither NumPy nor the library.
"""

import ast
import sys
import types
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "bitsweep"
package = types.ModuleType("bitsweep")  # without what it runs at import
package.__path__ = [str(SOURCE)]
sys.modules["bitsweep"] = package
from bitsweep.arguments import parameters_of  # noqa: E402


class Stub(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        for call in (one for one in node.decorator_list if isinstance(one, ast.Call)):
            if isinstance(call.func, ast.Name) and call.func.id == "takes":
                node.decorator_list.remove(call)
                without = [ast.literal_eval(keyword.value) for keyword in call.keywords]
                name = call.args[0].value  # type: ignore[attr-defined]
                self.give_settings(node.args, name, without[0] if without else ())
        node.body = [ast.Expr(ast.Constant(...))]
        return node

    def give_settings(
        self, arguments: ast.arguments, call: str, without: tuple[str, ...]
    ) -> None:
        arguments.kwarg = None
        own = [one.arg for one in arguments.args + arguments.kwonlyargs] + list(without)
        for parameter in parameters_of(call, own):
            kind = ast.parse(parameter.annotation, mode="eval").body
            arguments.kwonlyargs.append(ast.arg(parameter.name, kind))
            arguments.kw_defaults.append(ast.Constant(parameter.default))


def stub_of(source: str) -> str:
    return ast.unparse(ast.fix_missing_locations(Stub().visit(ast.parse(source)))) + "\n"


if __name__ == "__main__":
    for name in ("index", "vectors"):
        text = stub_of((SOURCE / f"{name}.py").read_text(encoding="utf-8"))
        Path(sys.argv[1], f"{name}.pyi").write_text(text, encoding="utf-8")
