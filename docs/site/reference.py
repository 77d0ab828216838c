"""Reference pages out of the code: options, settings, commands and C headers, each as the Markdown of a page.

Called by `hooks.py` with the page's name in the site. What a text of the code is about is
never repeated here: options are described in docs/spark.md and docs/sbe.md, which the tests compare with the code, settings in
conf/, commands by their own help, functions by the comments of their headers. What has no description is an error.
"""

from __future__ import annotations

import argparse
import html
import itertools
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from links import ROOT, rebased

from aeron_spark.cli.__main__ import parser
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.writing.options import WriteOptions

HEADERS = (
    "driver_native/include/aeron_spark/as_types.h",
    "driver_native/include/aeron_spark/as_driver.h",
    "driver_native/include/aeron_spark/as_client.h",
    "archive/include/aeron_spark/as_archive.h",
    "archive/include/aeron_spark/as_archive_client.h",
    "archive/include/aeron_spark/as_import.h",
    "archive/include/aeron_spark/as_archive_auth.h",
)
# Of a header: what only compilers and the generator of the Python declarations read.
NO_DECLARATION = re.compile(
    r'^(?:/\* CFFI-\w+ \*/|#(?:if\w*|endif|else|pragma|include)\b.*|#define \w+_H|extern "C" \{|\}|#define AS_MUST_USE\b.*)\n',
    re.MULTILINE,
)


def _table(page: str, heading: str) -> Iterator[list[str]]:
    """Cells of the rows of the first table below a heading."""
    section = (ROOT / "docs" / page).read_text("utf-8").split(f"\n## {heading}\n", 1)[1]
    found = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    if found is None:
        raise LookupError(f"docs/{page} has no table below {heading!r}")
    for line in found[0].splitlines()[2:]:
        yield [cell.strip() for cell in re.split(r"\s\|(?=\s)", line.removeprefix("|").removesuffix("|"))]


def spark_options(page: str) -> str:
    """Every option of reading and writing, by name."""
    sbe = {cells[0].strip("`"): cells for cells in _table("sbe.md", "Options in Spark")}
    parts = []
    for verb, names in (("reading", ReadOptions.NAMES), ("writing", WriteOptions.NAMES)):
        rows = {}
        for name, default, meaning in _table("spark.md", f"Options of {verb}"):
            rows[name.strip("`")] = default, rebased(_with_page(meaning, "spark.md"), "spark.md", page)
        for name, (_, purpose, default, meaning) in sbe.items():
            if purpose in ("both", verb):
                rows[name] = default, rebased(_with_page(meaning, "sbe.md"), "sbe.md", page)
        missing = set(names) - set(rows)
        if missing:
            raise LookupError(f"no description of {sorted(missing)}: add a row to docs/spark.md or docs/sbe.md")
        parts.append(f"## Options of {verb}\n\n| option | default | meaning |\n|---|---|---|")
        parts.extend(f"| `{name}` | {rows[name][0]} | {rows[name][1]} |" for name in sorted(names, key=str.lower))
        parts.append("")
    return "\n".join(parts)


def _with_page(text: str, page: str) -> str:
    """Links to headings of their own page name the page."""
    return text.replace("](#", f"]({page}#")


def driver_settings(page: str) -> str:
    """Every setting of the media driver."""
    return _settings("driver")


def archive_settings(page: str) -> str:
    """Every setting of the archive."""
    return _settings("archive")


def _settings(server: str) -> str:
    """A property file: its first comment as text, its sections as tables. A comment holds for the settings that follow it."""
    lines = (ROOT / "conf" / f"{server}.properties").read_text("utf-8").splitlines()
    first = lines.index("")
    parts = [_escaped(_without_reader(" ".join(line.lstrip("# ") for line in lines[:first]))), ""]
    comment: list[str] = []
    names: list[tuple[str, str]] = []

    def end() -> None:
        if names:
            told = _without_reader(" ".join(comment))
            keys = "<br>".join(f"`{name}`" for name, _ in names)
            defaults = "<br>".join(f"`{value}`" if value else "none" for _, value in names)
            parts.append(f"| {keys} | {defaults} | {_escaped(told)} |")
            comment.clear()
            names.clear()

    for line in [*lines[first:], "# "]:
        section = re.fullmatch(r"# -- (.+?) -+", line)
        setting = re.fullmatch(r"#([a-z][\w.]+)=(.*)", line)
        if setting:
            names.append((setting[1], setting[2]))
            continue
        end()
        if section:
            title = section[1][0].upper() + section[1][1:]
            parts.append(f"\n## {title}\n\n| setting | default | meaning |\n|---|---|---|")
        elif line.startswith("# "):
            comment.append(line[2:].strip())
    return "\n".join(parts)


def _without_reader(text: str) -> str:
    """A comment without the sentence that names the C files which read a setting."""
    return re.sub(r"\s*Readers?: .*?(?:\.(?=\s)|$)", "", text)


def _escaped(text: str) -> str:
    """Plain text as Markdown, also in a cell of a table; names of settings and of C are code."""
    text = re.sub(r"([\\*_\[\]|])", r"\\\1", html.escape(text, quote=False))
    code = r"-D\w+=\w+|\b(?:aeron(?:\.[\w*\\]+)+|(?:as|AS|AERON)\\_[\w\\*]+)(?:\(\))?"
    return re.sub(code, lambda match: f"`{match[0].replace(chr(92), '')}`", text)


def commands(page: str) -> str:
    """The help of each command."""
    os.environ["COLUMNS"] = "100"
    os.environ["NO_COLOR"] = "1"
    return "\n".join(_helps(parser(), 2))


def _helps(command: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"{'#' * level} {command.prog}\n\n```text\n{command.format_help()}```\n"
    for action in command._actions:  # argparse has no other way to its subcommands
        if isinstance(action, argparse._SubParsersAction):
            for one in dict.fromkeys(action.choices.values()):
                yield from _helps(one, min(level + 1, 3))


def c_api(page: str) -> str:
    """The public headers: comments as text, declarations as code."""
    parts = []
    for name in HEADERS:
        text = (ROOT / name).read_text("utf-8")
        intro, rest = text.removeprefix("/*").split("*/\n", 1)
        parts.append(f"## {Path(name).name}\n\n{_prose(intro)}")
        parts.extend(_declarations(NO_DECLARATION.sub("", rest)))
    return "\n".join(parts)


def _declarations(text: str) -> Iterator[str]:
    """Comments at the beginning of a line and the code between them. A comment with dashes is a heading."""
    pieces = re.split(r"^/\*(.*?)\*/\n", text, flags=re.DOTALL | re.MULTILINE)
    for comment, code in itertools.zip_longest(["", *pieces[1::2]], pieces[0::2]):
        heading = re.fullmatch(r" -- ([^.:\n]+?(?:: [^.\n]{1,40}?)?)(?: -+ |([.:].*))", comment, re.DOTALL)
        if heading:
            yield f"### {heading[1][0].upper()}{heading[1][1:]}\n\n{_prose((heading[2] or '').lstrip('.: '))}"
        elif comment:
            yield _prose(comment)
        if code.strip():
            yield f"```c\n{code.strip()}\n```\n"


def _prose(comment: str) -> str:
    """A comment without its stars; lines that are indented further are a listing."""
    lines = [
        re.sub(r"^ ?\* ?", "", line) if re.match(r" ?\*", line) else line.removeprefix("   ")
        for line in comment.split("\n")
    ]
    parts = []
    for indented, group in itertools.groupby(lines, key=lambda line: line.startswith("  ")):
        body = "\n".join(group)
        if indented:
            parts.append(f"```text\n{textwrap.dedent(body)}\n```\n")
        elif body.strip():
            parts.append(f"{_escaped(body.strip())}\n")
    return "\n".join(parts)
