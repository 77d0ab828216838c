"""`aeron_spark.testing` and its fixtures, as a project of somebody else uses them: by pytest in a folder of its own."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from aeron_spark.errors import UsageError
from aeron_spark.testing import RecordedFolder, Servers, assert_equal, difference, spark_session
from tests.kit.processes import Process
from tests.kit.wait import wait_until
from tests.python.test_docs import PAGES, ROOT, program

MESSAGES = pa.table({"position": [0, 64, 128], "price": [101, 102, 104]})

MORE = """
from aeron_spark.testing import spark_session

def test_an_active_session_is_given_and_goes_on(aeron_spark):
    with spark_session({"spark.app.name": "other"}) as again:
        assert again is aeron_spark
    assert again.range(2).count() == 2
    assert again.conf.get("spark.sql.shuffle.partitions") == "3"  # of conftest.py
"""
LAZY = """
import sys

def test_nothing_is_imported():
    assert "pytest_aeron_spark" in sys.modules
    assert not {"aeron_spark", "pyspark", "pyarrow"} & set(sys.modules)
"""
SEVERAL = """
import pathlib

import pytest

@pytest.mark.parametrize("end", ["passes", "fails"] * 2 + INTERRUPT)
def test_servers(aeron_servers, aeron_folder, tmp_path, end):
    assert aeron_folder.write(["one"]).recording_id == 0
    with open(FOUND, "a") as found:
        found.write(f"{aeron_servers.aeron_dir} {aeron_servers.archive_dir}\\n")
    if end == "interrupt":
        raise KeyboardInterrupt
    assert end == "passes"
"""
KILLED = """
import signal

from aeron_spark.testing import Servers

# Longer than the pause of a busy machine, which is not to end them while they start.
idle = {f"aeron.spark.{server}.exit.when.idle": "4s" for server in ("driver", "archive")}
servers = Servers(settings={**idle, "aeron.client.liveness.timeout": "5s"})
print(servers.aeron_dir, flush=True)
signal.pause()
"""


def pytest_in(folder: Path, *arguments: str, code: int = 0, timeout: float = 60) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *arguments]
    process = Process("pytest of a user", command, cwd=folder, env={"TMPDIR": str(folder)})
    assert process.wait_end(timeout=timeout) == code, process.report()
    return process.stdout()


def test_the_page_and_the_example_run(tmp_path: Path) -> None:
    """In one process, with one start of Spark."""
    tests_of_page, conftest = program("testing.md", "python").split("# conftest.py\n")
    (tmp_path / "test_page.py").write_text(tests_of_page, "utf-8")
    (tmp_path / "conftest.py").write_text(conftest, "utf-8")
    (tmp_path / "test_more.py").write_text(MORE, "utf-8")
    for source in (*(ROOT / "examples/testing").glob("*.py"), ROOT / "examples/prices.xml"):
        shutil.copy(source, tmp_path)
    tests = sum(path.read_text("utf-8").count("\ndef test_") for path in tmp_path.glob("test_*.py"))
    assert tests == 7
    assert f"{tests} passed" in pytest_in(tmp_path, timeout=200)
    assert not list(tmp_path.glob("aeron-spark-testing-*"))


def test_a_run_that_uses_no_fixture_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_lazy.py").write_text(LAZY, "utf-8")
    assert "1 passed" in pytest_in(tmp_path)


@pytest.mark.parametrize("interrupt", [False, True])
def test_servers_go_whatever_a_test_does(tmp_path: Path, *, interrupt: bool) -> None:
    found = tmp_path / "found"
    text = SEVERAL.replace("FOUND", repr(str(found))).replace("INTERRUPT", '["interrupt"]' if interrupt else "[]")
    (tmp_path / "test_several.py").write_text(text, "utf-8")
    out = pytest_in(tmp_path, *([] if interrupt else ["-n", "2"]), code=2 if interrupt else 1)
    assert "2 failed, 2 passed" in out
    directories = found.read_text("utf-8").split()
    assert len(set(directories)) == len(directories) == (10 if interrupt else 8)
    assert not [name for name in directories if Path(name).exists()]


def test_servers_end_when_their_owner_is_killed(tmp_path: Path) -> None:
    owner = Process("owner", [sys.executable, "-c", KILLED], env={"TMPDIR": str(tmp_path)})
    aeron_dir = Path(wait_until(lambda: owner.stdout().strip(), 20, "servers"))
    assert aeron_dir.exists()
    os.kill(owner.pid, signal.SIGKILL)
    wait_until(lambda: not aeron_dir.exists(), 60, "the driver to end and remove its directory")


def test_a_setting_that_cannot_be_says_where_to_look() -> None:
    with pytest.raises(Exception, match=r"aeron\.mtu\.length") as failure:
        Servers(settings={"aeron.mtu.length": "1"})
    assert "aeron-spark doctor" in failure.value.__notes__[0]


@pytest.mark.parametrize("module", ["pyspark", "pyspark.sql"])
def test_no_pyspark_says_what_to_type(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    if module == "pyspark":
        monkeypatch.delitem(sys.modules, "pyspark.sql", raising=False)
    with pytest.raises(UsageError, match=r"pip install 'aeron-spark\[spark\]'"), spark_session():
        pass


@pytest.mark.parametrize(
    ("messages", "arguments", "text"),
    [
        ("one", {}, "put it into a list"),
        ([{"price": 1}], {}, "give schema and message"),
        ([1], {}, "text or bytes, not int"),
        (pa.table({"price": [1]}), {}, "columns value and reserved_value, this one has price"),
        ([b"x"], {"schema": "prices.xml"}, "schema and message together"),
        (["x"], {"schema": "prices.xml", "message": "Quote"}, "dicts of the fields of Quote"),
        ([{"symbl": "x"}], {"schema": "prices.xml", "message": "Quote"}, "did you mean symbol"),
        ([{"bid": "x"}], {"schema": "prices.xml", "message": "Quote"}, "do not fit message Quote"),
    ],
)
def test_messages_that_cannot_be_written(messages: Any, arguments: dict[str, Any], text: str) -> None:
    if "message" in arguments:
        arguments = {**arguments, "schema": ROOT / "examples/prices.xml"}
    no_servers: Any = None
    with pytest.raises(UsageError, match=text):
        RecordedFolder(no_servers).write(messages, **arguments)


def test_the_difference_on_the_page_is_real() -> None:
    expected = {"position": [0, 64, 128, 192], "price": [101, 103, 104, 105]}
    assert f"```text\n{difference(MESSAGES, expected)}\n```" in PAGES["testing.md"]


@pytest.mark.parametrize("others", [*itertools.product([0, 1, 3], [False, True])])
def test_a_row_more_or_less_is_one_difference(others: tuple[int, bool]) -> None:
    at, is_missing = others
    longer = pa.concat_tables([MESSAGES.slice(0, at), pa.table({"position": [7], "price": [8]}), MESSAGES.slice(at)])
    text = difference(MESSAGES, longer) if is_missing else difference(longer, MESSAGES)
    what = f"expected row {at} is missing" if is_missing else f"row {at} is not expected"
    assert text.splitlines()[1:] == [f"  {what}: position 7, price 8"]


def test_columns_and_types_are_differences() -> None:
    other = pa.table({"position": pa.array([0, 64, 128], pa.int32()), "size": [1, 2, 3]})
    assert difference(MESSAGES, other).splitlines() == [
        "tables differ in 0 rows (3 actual, 3 expected)",
        "  column size is missing",
        "  column position is int64, expected int32",
        "  column price is not expected",
    ]
    assert "column price is int64, expected string" in difference(
        MESSAGES, {"position": [0, 64, 128], "price": ["a"] * 3}
    )


def test_what_is_equal_has_no_difference() -> None:
    nan, plain = float("nan"), {"position": [0, 64, 128], "price": [101, 102, 104]}
    for other in (plain, MESSAGES.to_pylist(), MESSAGES.to_batches()[0], MESSAGES.to_pandas(), MESSAGES.select([1, 0])):
        assert_equal(MESSAGES, other)
        assert_equal(other, MESSAGES)
    assert_equal(pa.table({"a": [nan], "b": [[nan]]}), pa.table({"a": [nan], "b": [[nan]]}))
    assert_equal(MESSAGES.slice(0, 0), [])
    assert_equal(MESSAGES.take([2, 0, 1]), MESSAGES, ignore_order=True)
    assert difference(MESSAGES.take([2, 0, 1]), MESSAGES)
    zeros = pa.table({"a": [[0.0], [-0.0], [0.5]], "b": [2, 1, 3]})
    turned = pa.table({"a": [[-0.0], [0.0], [0.5]], "b": [2, 1, 3]})
    assert_equal(zeros, turned)
    assert_equal(zeros, turned, ignore_order=True)
    assert difference(pa.table({"a": [-0.05]}), pa.table({"a": [0.05]}), ignore_order=True)


def test_long_values_are_shown_where_they_differ() -> None:
    one, other = b"x" * 5000 + b"one", b"x" * 5000 + b"two"
    assert difference({"value": [one]}, {"value": [other]}).splitlines()[1:] == [
        "  row 0",
        "    value from 5000 on: b'one', expected b'two'",
    ]


def test_times_are_compared_to_the_nanosecond() -> None:
    times = [pa.table({"at": pa.array([nanos], pa.timestamp("ns", tz="UTC"))}) for nanos in (1, 2)]
    assert "'1970-01-01 00:00:00.000000001', expected '1970-01-01 00:00:00.000000002'" in difference(*times)


MOMENTS = [
    (pa.time64("ns"), 1, 2), (pa.time32("s"), 1, 2), (pa.duration("ns"), 1, 2), (pa.duration("s"), 2**62, 1),
    (pa.timestamp("ns"), 1, 2), (pa.timestamp("us", "UTC"), 2**62, 2**62 + 1), (pa.timestamp("s", "Asia/Tokyo"), 2**62, 1),
    (pa.date32(), 2**30, -(2**31)), (pa.date64(), 86_400_000 * 2**30, 0),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "one", "other"), MOMENTS)
def test_times_that_python_does_not_have_are_compared(kind: pa.DataType, one: int, other: int) -> None:
    """Without pandas, which Arrow asks for nanoseconds within lists."""
    number = pa.int32() if kind.bit_width == 32 else pa.int64()
    for wrapped in (
        lambda of: of,
        pa.list_,
        pa.large_list,
        lambda of: pa.list_(of, 1),
        lambda of: pa.struct([("a", of)]),
        lambda of: pa.map_(pa.int8(), of),
        lambda of: pa.list_(pa.struct([("a", pa.list_(of))])),
    ):
        of = wrapped(number)
        left, right, same = (
            pa.table({"at": pa.array([_wrapped(of, value), None], of).cast(wrapped(kind))})
            for value in (one, other, one)
        )
        assert "1 row (" in difference(left, right), of
        assert_equal(left, same)
        assert "row 0 is not expected" in difference(left, left.slice(1))
        assert_equal(pa.concat_tables([left, right]), pa.concat_tables([right, left]), ignore_order=True)


def _wrapped(of: pa.DataType, value: int) -> Any:
    if pa.types.is_struct(of):
        return {one.name: _wrapped(one.type, value) for one in of}
    if pa.types.is_map(of):
        return [(1, _wrapped(of.item_type, value))]
    return value if pa.types.is_integer(of) else [_wrapped(of.value_type, value)]


def test_times_of_dictionaries_are_compared() -> None:
    times = [pa.array([nanos], pa.timestamp("ns", "UTC")).dictionary_encode() for nanos in (1, 2)]
    assert "expected '1970-01-01 00:00:00.000000002'" in difference(*(pa.table({"at": one}) for one in times))


def test_lines_are_limited_and_all_rows_counted() -> None:
    count = 5000
    lines = difference({"a": list(range(count))}, {"a": [-one - 1 for one in range(count)]}, max_lines=7).splitlines()
    assert len(lines) == 7
    assert lines[0] == f"tables differ in {count} rows ({count} actual, {count} expected)"
    assert re.search("cut after 7 lines", lines[-1])


@pytest.mark.parametrize("data", [7, "text", [1], pa.table([[1], [2]], names=["a", "a"])])
def test_what_is_no_table_is_an_error(data: Any) -> None:
    with pytest.raises(UsageError):
        assert_equal(data, MESSAGES)
