"""Write `_lib.pyi`, the typed stub of the extension, from the public headers: `python build_stub.py INCLUDE... > _lib.pyi`.

Run by hand after a change of a public header; a test compares. Pointers are Any, numbers and enumerations int.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from build_ffi import interface  # type: ignore[import-not-found]  # a script beside this one

HEAD = '''\
"""Typed stub of the cffi extension; written by build_stub.py."""

from typing import Any

ffi: Any

class _Lib:
'''


def python_type(kind: Any) -> str:
    """Python's side of a C type as cffi knows it."""
    name = type(kind).__name__
    if name == "VoidType":
        return "None"
    if name == "PrimitiveType":
        return "bool" if kind.name == "_Bool" else "int"
    return "int" if name == "EnumType" else "Any"


def stub(include: list[Path]) -> str:
    """Text of the stub."""
    parser = interface(include)._parser
    members = dict.fromkeys(parser._int_constants, "int")
    functions = {}
    for declared, (kind, _) in parser._declarations.items():
        what, _, name = declared.partition(" ")
        if what == "function":
            arguments = "".join(f", _{index}: {python_type(kind)}" for index, kind in enumerate(kind.args))
            functions[name] = (
                f"def {name}(self{arguments}{', /' if arguments else ''}) -> {python_type(kind.result)}: ..."
            )
        elif what == "extern_python":
            members[name] = "Any"
    lines = [f"    {name}: {kind}\n" for name, kind in sorted(members.items())]
    lines += [f"    {text}\n" for _, text in sorted(functions.items())]
    return HEAD + "".join(lines) + "\nlib: _Lib\n"


if __name__ == "__main__":
    sys.stdout.write(stub([Path(folder) for folder in sys.argv[1:]]))
