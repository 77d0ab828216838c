"""No file depends on itself by way of others: not in C, not in the Python package.

Method: a C unit is a `.c` file together with the header of its name. It depends on each unit whose header it includes, and on
each that defines a function which it names, whatever header declares that. A Python module depends on each module of the
package that it imports, be it for type checkers only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
C_ROOTS = (Path("driver_native/src"), Path("archive/src"), Path("aeron_spark/_native/kernels"))
PACKAGE = Path("aeron_spark")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
DEFINED = re.compile(r"^(?!static\b|typedef\b|extern\b)[A-Za-z_][\w \t*]*?\b(asi?_\w+)\([^;{]*\)\s*\{", re.MULTILINE)
NAME = re.compile(r"\basi?_\w+\b")

Graph = Mapping[str, set[str]]


def cycles(graph: Graph) -> Iterator[list[str]]:
    """Groups of nodes that can all reach each other (Tarjan's strongly connected components of more than one node)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    yield from found


def c_files(root: Path) -> Iterator[Path]:
    """Sources and headers below a root of includes."""
    yield from (one for one in sorted((ROOT / root).rglob("*")) if one.suffix in (".c", ".h"))


def c_graph(root: Path, changed: Mapping[str, str] | None = None) -> Graph:
    """Units of one root of includes; `changed` replaces the text of files, by path below the root."""
    texts = {str(one.relative_to(ROOT / root)): one.read_text() for one in c_files(root)} | dict(changed or {})
    graph: dict[str, set[str]] = {}
    definers = {
        function: name.removesuffix(".c")
        for name, text in texts.items()
        if name.endswith(".c")
        for function in DEFINED.findall(COMMENT.sub("", text))
    }
    for name, text in texts.items():
        unit = name.rsplit(".", 1)[0]
        used = {included.rsplit(".", 1)[0] for included in INCLUDE.findall(text) if included in texts}
        if name.endswith(".c"):
            used |= {definers[one] for one in NAME.findall(COMMENT.sub("", text)) if one in definers}
        graph.setdefault(unit, set()).update(used - {unit})
    return graph


def imports_of(path: Path) -> Iterator[str]:
    """Modules of the package that a module imports, wherever it does so, for type checkers included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def python_graph() -> Graph:
    """Modules of the package, a package itself standing for its `__init__`."""
    files = {
        one: ".".join(one.relative_to(ROOT).with_suffix("").parts) for one in sorted((ROOT / PACKAGE).rglob("*.py"))
    }
    names = {path: name.removesuffix(".__init__") for path, name in files.items()}
    known = set(names.values())
    graph: dict[str, set[str]] = {}
    for path, name in names.items():
        wanted = list(imports_of(path))
        # `from package import module` wants the module, not what the package's __init__ offers.
        graph[name] = {
            other
            for other in wanted
            if other in known
            and other != name
            and not any(f"{other}." in deeper and deeper in known for deeper in wanted)
        }
    return graph


def told(groups: Iterable[list[str]], graph: Graph) -> str:
    """Each group with the edges inside it."""
    lines = []
    for group in groups:
        lines.append("a cycle of " + ", ".join(group))
        lines += [f"  {one} uses {other}" for one in group for other in sorted(graph.get(one, ())) if other in group]
    return "\n".join(lines)


@pytest.mark.parametrize("root", C_ROOTS, ids=str)
def test_no_c_file_depends_on_itself(root: Path) -> None:
    graph = c_graph(root)
    assert len(graph) > 5
    assert not (groups := list(cycles(graph))), told(groups, graph)


def test_an_include_that_makes_a_cycle_is_found() -> None:
    root = C_ROOTS[0]
    low = "driver/ctl/report.c"
    text = (ROOT / root / low).read_text()
    graph = c_graph(root, {low: text + '#include "driver/ctl/network.h"\n'})
    assert [one for group in cycles(graph) for one in group if one in ("driver/ctl/network", "driver/ctl/report")] == [
        "driver/ctl/network",
        "driver/ctl/report",
    ]


def test_no_python_module_depends_on_itself() -> None:
    graph = python_graph()
    assert len(graph) > 40
    assert not (groups := list(cycles(graph))), told(groups, graph)
