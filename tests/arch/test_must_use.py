"""Results that say whether a call has failed can't be dropped: such functions carry AS_MUST_USE.

Method: the declarations of the headers are read as text. A public function can fail if it returns as_result, or if it acts (it
takes memory that it may write, or a handler) and returns something else: a count, a position, an object. The others only read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.arch.test_rooms import ROOT, c_files, text_of

PUBLIC = sorted(
    path
    for folder in ("driver_native/include", "archive/include", "aeron_spark/_native/kernels/aeron_spark")
    for path in (ROOT / folder).rglob("*.h")
)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
DECLARATION = re.compile(
    r"^(?P<type>(?:const |struct )?\w+ \*?)(?P<name>asi?_\w+)\((?P<arguments>[^;{}]*?)\)(?P<mark>\s+AS_MUST_USE)?;",
    re.MULTILINE,
)
# Functions that act, can't fail, and have a result that a caller may not need.
MAY_DROP = {
    "as_client_invoke": "work count",
    "as_driver_do_work": "work count",
    "as_archive_do_work": "work count; as_archive_has_failed says more",
    "as_client_next_correlation_id": "a number",
    "as_counter_add": "previous value",
    "as_counter_address": "the counter's own memory",
    "as_image_retain": "its argument",
    "as_archive_client_aeron": "borrowed object",
    "as_replay_merge_image": "borrowed object",
    "as_controlled_assembler_on_fragment": "a handler, called by polls",
}
# Functions that only record a failure and return its class, for `return` of the caller.
RECORDERS = {"asi_fail", "asi_fail_errno", "asi_fail_again", "asi_fail_in", "asi_client_fail_closed"}


def declared(path: Path) -> Iterator[tuple[str, str, str, bool]]:
    """Type, name, arguments and whether it is marked, of each function that a header declares."""
    for found in DECLARATION.finditer(COMMENT.sub("", text_of(path))):
        yield found["type"].strip(), found["name"], found["arguments"], found["mark"] is not None


def acts(arguments: str) -> bool:
    """Whether a function with these arguments may write memory of its caller or call a handler."""
    return any(
        ("*" in argument and not argument.strip().startswith("const ")) or re.search(r"\bas_on_|_handler\b", argument)
        for argument in arguments.split(",")
    )


@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_public_functions_that_can_fail_are_must_use(path: Path) -> None:
    wrong = [
        name
        for kind, name, arguments, is_marked in declared(path)
        if kind != "void" and name not in MAY_DROP and (kind == "as_result" or acts(arguments)) and not is_marked
    ]
    assert not wrong


def test_the_exempt_exist_and_return_no_result() -> None:
    kinds = {name: kind for path in PUBLIC for kind, name, _, is_marked in declared(path) if not is_marked}
    assert MAY_DROP.keys() <= kinds.keys()
    assert "as_result" not in {kinds[name] for name in MAY_DROP}


def test_internal_functions_that_return_a_result_are_must_use() -> None:
    headers = [path for path in c_files(under=("driver_native/src", "archive/src")) if path.suffix == ".h"]
    assert len(headers) > 100
    wrong = [
        f"{path}: {name}"
        for path in headers
        for kind, name, _, is_marked in declared(path)
        if kind == "as_result" and not is_marked and name not in RECORDERS
    ]
    assert not wrong


def test_a_public_function_was_found_for_each_line_that_looks_like_one() -> None:
    for path in PUBLIC:
        text = COMMENT.sub("", text_of(path))
        lines = re.findall(r"^(?:const )?\w+ \*?(as_\w+)\(", text, re.MULTILINE)
        assert lines == [name for _, name, _, _ in declared(path)], path.name
