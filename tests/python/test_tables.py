"""Scans: the rows that a filter selects and no others, whatever is left unread; columns, times, SBE, ends and errors.

Method: recordings of SBE messages in two streams, whose rows are known. Every answer of a scan is compared with what Arrow
selects from the whole table, and what is read with `ranges`. The rows of all access modes: tests/conformance.
"""

from __future__ import annotations

import builtins
import datetime as dt
import re
import struct
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import dataset, fs

from aeron_spark import DataLossError, Folder, UsageError
from aeron_spark import batch as batches_of
from aeron_spark.archive.objects import ObjectFolder
from aeron_spark.archive.segments import read_files
from aeron_spark.tables import Scan, scan, scans
from aeron_spark.tables import duckdb as of_duckdb
from aeron_spark.tables import pandas as of_pandas
from aeron_spark.tables import polars as of_polars
from aeron_spark.tables.dictionaries import as_dictionary, with_dictionary
from aeron_spark.testing import RecordedFolder
from tests.kit import hiding
from tests.kit.market import COUNT, SCHEMA, START_NS, Market, of, quote, read_bytes, until_failure
from tests.kit.programs import ended_well

# -- rows and columns --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_those_of_the_folder_in_order(market: Market, threads: int) -> None:
    expected = []
    with Folder(market.path) as folder:
        for recording in (market.recording, market.texts):
            expected += list(folder.read(recording))
    found = of(market, threads=threads, batch_rows=1000)
    assert found.select(expected[0].schema.names).to_table().equals(pa.Table.from_batches(expected))
    assert max(batch.num_rows for batch in found) <= 1000
    assert found.count_rows() == COUNT + 500
    assert [row["value"] for row in of(market, market.texts).head(2).to_pylist()] == [b"line 0", b"line 1"]


def test_every_pass_reads_anew_and_all_of_it_is_closed(market: Market) -> None:
    table = of(market)
    assert table.to_table().equals(table.to_table())
    with Folder(market.path) as folder:
        opened = scan(folder, market.texts)
        taken = opened.batches()
        assert next(taken).num_rows > 0
        taken.close()
        assert list(taken) == []
        assert not folder._children
        assert opened.count_rows() == 500
        assert not folder._children


def test_columns_that_are_not_asked_for_are_not_made(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def spy(*given: Any, **choice: Any) -> Any:
        asked.append(list(choice["columns"]))
        return read_files(*given, **choice)

    monkeypatch.setattr("aeron_spark.archive.segments.read_files", spy)
    assert of(market, market.texts).to_table(columns=["position"]).schema.names == ["position"]
    assert of(market, market.texts).count_rows() == 500
    assert of(market, sbe=SCHEMA, threads=1).select(["stream_id"]).head(1).num_rows == 1
    of(market, market.texts).to_table(columns=["timestamp", "term_id"], filter="stream_id = 2002")
    assert asked == [["position"], ["position"], ["stream_id"], ["stream_id", "term_id", "next_position"]]


def test_columns_and_options_that_are_wrong_are_named(market: Market) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        (r"column 'valu'.*did you mean value", {"columns": ["valu"]}),
        (r"timestamp='now' is unknown, choose index", {"timestamp": "now"}),
        ("time_unit='s' is none of ns, us", {"time_unit": "s"}),
        ("need a schema", {"message": "Quote"}),
        ("there is no message 'Qote'.*did you mean Quote", {"sbe": SCHEMA, "message": "Qote"}),
        ("threads=0", {"threads": 0}),
        ("batch_seconds must be above 0", {"batch_rows": 0}),
        ("batch_seconds must be above 0", {"batch_bytes": 0}),
        ("batch_seconds must be above 0", {"batch_seconds": 0.0}),
        ("last is a number from 0 on", {"last": -1}),
        ("last is .* not for follow=True", {"last": 1, "follow": True}),
        ("there is no option 'decimal'.*decimals", {"sbe": SCHEMA, "sbe_options": {"decimal": "double"}}),
        ("there is no column 'prise'.*did you mean price", {"sbe": SCHEMA, "message": "Quote", "filter": "prise > 3"}),
    ]
    for text, options in wrong:
        with pytest.raises(UsageError, match=text):
            of(market, **options)
    for text, options in (("name it", {"start": 0}), ("name it", {"end": 0, "recordings": None})):
        with pytest.raises(UsageError, match=text):
            scan(market.path, **options).to_table()
    with pytest.raises(UsageError, match="goes from 0 to"):
        of(market, market.recording, start=10**9).to_table()
    with pytest.raises(UsageError, match="77"):
        of(market, 77).batches()
    with pytest.raises(UsageError, match="only an archive's folder has a time index"):
        scan("s3://bucket/folder", columns=["timestamp"])
    for text in ("timestamp > 2026-01-01", pc.field("timestamp").is_null()):
        with pytest.raises(UsageError, match="only an archive's folder has a time index"):
            scan("s3://bucket/folder", filter=text)


# -- SBE ---------------------------------------------------------------------------------------------------------------------


def test_sbe_messages_are_columns(market: Market) -> None:
    union = of(market, market.recording, sbe=SCHEMA)
    assert union.schema.names[-4:] == ["sbe_template_id", "sbe_template", "Quote", "Trade"]
    fifth = union.head(5).to_pylist()[4]
    assert (fifth["sbe_template"], fifth["Quote"], fifth["Trade"]) == ("Trade", None, {"number": 4, "size": 4})
    quotes = of(market, market.recording, sbe=SCHEMA, message="Quote", columns=["number", "position"])
    expected = [
        {"number": number, "position": position}
        for number, position in enumerate(market.whole["position"].to_pylist()[:COUNT])
        if number % 5 != 4
    ]
    assert quotes.to_table().to_pylist() == expected
    assert quotes.select(["position"]).to_table().num_rows == len(expected)
    assert quotes.count_rows(filter="price = 100") == sum(row["number"] % 50 == 0 for row in expected)


def test_what_a_field_hides_has_another_name(market: Market) -> None:
    """With it a filter narrows what is read as without a schema; where there is no index it has no times either."""
    times = {"timestamp": "reserved(ns)", "ascending": True}
    plain, hidden = of(market, **times), of(market, **times, sbe=hiding.SCHEMA, message="Row")
    assert [hidden.own(name) for name in ("timestamp", "stream_id")] == ["message:timestamp", "stream_id"]
    when = pa.scalar(START_NS + COUNT // 2 * 1000, pa.timestamp("ns", "UTC"))
    for name, at in (("recording_id", pa.scalar(1)), ("position", pa.scalar(1 << 20)), ("timestamp", when)):
        found, wanted = (one.filter(pc.field(one.own(name)) >= at).ranges() for one in (hidden, plain))
        assert found == wanted != plain.ranges()
    rows = hidden.filter("price > 0 and message:position >= 64").schema
    assert (rows.field("timestamp").type, hidden.select(["message:timestamp"]).schema.types) == (
        pa.int64(),
        [when.type],
    )
    remote = scan("aeron:udp?endpoint=localhost:8010", sbe=hiding.SCHEMA, message="Row")
    with pytest.raises(UsageError, match="no column 'timestamp': only an archive's folder"):
        remote.filter(pc.field(remote.own("timestamp")) >= when)
    with pytest.raises(UsageError, match="no column 'timestamp': only an archive's folder"):
        remote.by_time()


def test_messages_of_templates_outside_of_the_filter_are_not_decoded(market: Market) -> None:
    """Nonsense has no template, so that only who may select it decodes it."""
    union = of(market, market.broken, sbe=SCHEMA)
    for text in ("sbe_template = Quote", "Quote.price >= 100", "sbe_template in (Quote, Trade)"):
        assert union.filter(text).to_table().num_rows == 20, text
    assert union.filter("sbe_template = Trade").to_table().num_rows == 0
    with pytest.raises(DataLossError, match="UNKNOWN"):
        union.filter("session_id != 0").to_table()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_message_that_cannot_be_decoded_ends_the_rows_before_it(
    market: Market, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "PIECE_BYTES", 1000)  # else one thread reads what is so short
    position = scan(market.path, market.broken).to_table()["position"][10].as_py()
    found = scan(
        market.path, market.broken, sbe=SCHEMA, message="Quote", sbe_options={"others": "error"}, threads=threads
    )
    rows, failure = until_failure(found)
    assert failure.startswith(f"recording {market.broken}: the message at position {position} cannot be decoded")
    assert "sbe_error" in failure
    assert [row["number"] for row in rows] == list(range(10))

    def with_choice(choice: str) -> pa.Table:
        options = {"others": "error", "on_error": choice}
        return scan(market.path, market.broken, sbe=SCHEMA, message="Quote", sbe_options=options).to_table()

    assert with_choice("drop")["number"].to_pylist() == [*range(10), *range(10)]
    kept = with_choice("null")
    assert (kept.num_rows, kept["sbe_raw"][10].as_py()) == (21, b"nonsense")
    assert kept["sbe_error"].null_count == 20


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("columns", [["number", "value"], ["number", "symbol"], ["number", "position"], ["timestamp"]])
def test_values_stay_as_they_are_while_more_is_read(
    aeron_folder: RecordedFolder, threads: int, columns: list[str]
) -> None:
    """In batches of some rows, of two passes that alternate: columns that no row keeps share memory."""
    payloads, stamps = [quote(number) for number in range(1000)], [START_NS + number for number in range(1000)]
    written = aeron_folder.write(payloads, channel="aeron:ipc?term-length=64k", reserved_values=stamps)
    found = scan(
        aeron_folder, written.recording_id, sbe=SCHEMA, message="Quote", columns=columns, timestamp="reserved(ns)",
        batch_rows=64, threads=threads,
    )  # fmt: skip
    taken = list(zip(found.batches(), found.batches(), strict=True))
    expected = {
        "number": list(range(1000)),
        "value": payloads,
        "symbol": [payload[-4:].rstrip(b"\0").decode() for payload in payloads],
        "position": list(written.positions),
        "timestamp": stamps,
    }
    for one in (0, 1):
        rows = pa.Table.from_batches([pair[one] for pair in taken])
        for name in columns:
            column = rows[name].cast(pa.int64()) if name == "timestamp" else rows[name]
            assert column.to_pylist() == expected[name]


def test_a_schema_that_changes_within_a_recording(aeron_folder: RecordedFolder) -> None:
    """Old and newer messages, alternating, are rows of both versions of the schema; those of another schema lose no other."""
    symbol = '<field name="symbol" id="4" type="Symbol"/>'
    lot = '<field name="lot" id="5" type="int64" sinceVersion="1" presence="optional"/>'
    newer = SCHEMA.replace('version="0"', 'version="1"').replace(symbol, symbol + lot)

    def newer_quote(number: int) -> bytes:
        header = struct.pack("<HHHH", 29, 1, 7, 1)
        return header + quote(number)[8:] + struct.pack("<q", number * 10)

    def foreign(number: int) -> bytes:
        return struct.pack("<HHHH", 21, 1, 8, 0) + quote(number)[8:]

    makers = (quote, newer_quote)
    written = aeron_folder.write([*(makers[number % 2](number) for number in range(100)), foreign(100), quote(101)])

    def of_quotes(schema: str, **options: Any) -> Scan:
        return scan(aeron_folder, written.recording_id, sbe=schema, message="Quote", sbe_options=options)

    for schema in (SCHEMA, newer):
        rows, failure = until_failure(of_quotes(schema, others="error"))
        assert [row["number"] for row in rows] == list(range(100))
        assert f"the message at position {written.positions[100]} cannot be decoded" in failure
        kept = of_quotes(schema, others="error", on_error="null").to_table()
        assert kept["number"].to_pylist() == [*range(100), None, 101]
        assert kept["sbe_raw"][100].as_py() == foreign(100)
    lots = of_quotes(newer, others="error", on_error="drop").to_table()["lot"].to_pylist()
    assert lots == [*(number * 10 if number % 2 else None for number in range(100)), None]


#: Messages with a group.
BOOKS = SCHEMA.replace(
    "</types>",
    '<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>'
    '<type name="numInGroup" primitiveType="uint16"/></composite></types>',
).replace(
    "</sbe:messageSchema>",
    '<sbe:message name="Book" id="3"><field name="number" id="1" type="uint64"/><group name="levels" id="2">'
    '<field name="level" id="1" type="int64"/></group></sbe:message></sbe:messageSchema>',
)


@pytest.mark.parametrize("explode", [None, "levels"])
def test_a_value_that_its_column_does_not_hold_is_an_error_with_its_own_remedy(
    aeron_folder: RecordedFolder, explode: str | None
) -> None:
    """Also of messages that have no row."""
    rows = [{"number": 1 << 63, "levels": []}]
    written = aeron_folder.write(rows, schema=BOOKS, message="Book")

    def of_books(**options: Any) -> Scan:
        options |= {"explode": explode} if explode else {}
        return scan(aeron_folder, written.recording_id, sbe=BOOKS, message="Book", sbe_options=options)

    got, failure = until_failure(of_books(uint64="long"))
    assert got == []
    assert "the message at position 0, or one soon after it: 1 values do not fit the types of their columns" in failure
    assert "sbe_error" not in failure  # which would be empty
    for choice in ("null", "drop"):
        kept = of_books(uint64="long", on_error=choice).to_table()
        assert kept["number"].to_pylist() == ([] if explode else [None])
    assert len(of_books().to_table()) == (0 if explode else 1)


def test_groups_become_rows_with_the_messages_columns(aeron_folder: RecordedFolder) -> None:
    rows = [{"number": number, "levels": [{"level": level} for level in range(number)]} for number in range(4)]
    written = aeron_folder.write(rows, schema=BOOKS, message="Book")
    found = scan(
        aeron_folder, written.recording_id, sbe=BOOKS, message="Book", sbe_options={"explode": "levels"},
        columns=["position", "number", "level"],
    )  # fmt: skip
    expected = [
        {"position": written.positions[number], "number": number, "level": level}
        for number in range(4)
        for level in range(number)
    ]
    assert found.to_table().to_pylist() == expected
    assert found.filter("level = 1").to_table().to_pylist() == [row for row in expected if row["level"] == 1]


# -- pandas, Polars, DuckDB, pyarrow -------------------------------------------------------------------------------------------


def explained(query: str, **tables: Any) -> str:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return str(connection.sql(f"EXPLAIN {query}").fetchall()[0][1])


def test_duckdb_passes_columns_and_filters(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[tuple[Any, Any]] = []
    batches = Scan.batches

    def spy(self: Scan, columns: Any = None, filter: Any = None) -> Any:  # noqa: A002
        if columns is not None:
            passed.append((columns, str(filter)))
        return batches(self, columns, filter)

    monkeypatch.setattr(Scan, "batches", spy)
    table = of_duckdb.from_aeron(market.path, market.recording, sbe=SCHEMA, message="Quote")
    assert table.filter("price = 100 AND position >= 0").aggregate("count(*), max(number)").fetchall() == [
        (COUNT // 50, COUNT - 50)
    ]
    columns, passed_filter = passed[-1]
    assert set(columns) in ({"number"}, {"number", "position", "price"})  # with those of the filter, by its version
    assert passed_filter == "((price == 100) and (position >= 0))"
    quotes = of(market, market.recording, sbe=SCHEMA, message="Quote", time_unit="us")
    plan = explained("SELECT sum(number) FROM q WHERE price = 100 AND timestamp >= '2001-01-01'", q=quotes)
    assert "ARROW_SCAN" in plan
    assert "price=100" in re.sub('[" ]', "", plan)
    assert re.search(r"Projections:\W+number\W", plan)


def test_duckdb_gives_the_same_rows_for_every_column(market: Market) -> None:
    quotes = of_duckdb.from_aeron(market.path, market.recording, sbe=SCHEMA)
    expected = of(market, market.recording, sbe=SCHEMA, time_unit="us").to_table()
    assert quotes.to_arrow_table().cast(expected.schema).to_pylist() == expected.to_pylist()
    assert duckdb.sql("SELECT count(*) FROM quotes WHERE Quote.side = 'BUY'").fetchall() == [
        (sum(row["Quote"] is not None and row["Quote"]["side"] == "BUY" for row in expected.to_pylist()),)
    ]
    assert len(duckdb.sql("SELECT position FROM quotes LIMIT 3").fetchall()) == 3


@pytest.mark.parametrize(
    "texts",
    [
        ["ABC", "XYZ", "ABC", ""] * 100,
        [f"text {number}" for number in range(400)],
        [None, "", None, "ABC", ""] * 100,
        [None] * 400,
        ["eight by", "eight bY", "nine byte", "\u00e9"] * 100,
        [],
    ],
    ids=["few", "all different", "nulls and empty ones", "nothing", "long ones", "no rows"],
)
@pytest.mark.parametrize("begin", [0, 1, 9])
def test_texts_in_dictionaries_are_the_texts(texts: list[str | None], begin: int) -> None:
    column = pa.array(texts, pa.string())[begin:]
    found = as_dictionary(column)
    assert found.type == with_dictionary(pa.field("symbol", pa.string())).type
    assert found.to_pylist() == texts[begin:]
    values = len({*texts} - {None})
    assert values == len(texts) or len(found.dictionary) <= values + 1
    with duckdb.connect() as connection:
        connection.register("rows", pa.table({"symbol": found}))
        assert connection.sql("SELECT symbol FROM rows").fetchall() == [(text,) for text in texts[begin:]]


@pytest.mark.usefixtures("small_pieces")
def test_duckdb_groups_texts_of_many_batches(market: Market) -> None:
    whole = of(market, market.recording, sbe=SCHEMA, message="Quote").to_table()
    quotes = of_duckdb.from_aeron(market.path, market.recording, sbe=SCHEMA, message="Quote", batch_rows=700)
    assert quotes.types[quotes.columns.index("symbol")] == "VARCHAR"
    rows = duckdb.from_arrow(whole)
    for condition in ("number >= 0", "number % 7 = 0", "symbol != 'ABC'", "number > 11111", "symbol > 'B'"):
        found, expected = (
            one.filter(condition).aggregate("symbol, count(*), sum(number)", "symbol").order("symbol").fetchall()
            for one in (quotes, rows)
        )
        assert found == expected


def test_memory_between_passes_is_bounded(market: Market) -> None:
    quotes = of(market, market.recording, sbe=SCHEMA, message="Quote", columns=["number"])
    many = [quotes.batches() for _ in range(2 * batches_of.MAX_IDLE)]
    assert all(next(one).num_rows for one in many)
    for one in many:
        one.close()
    assert 0 < len(batches_of._idle) <= batches_of.MAX_IDLE
    for held in batches_of._idle:
        assert sum(one.size for one in held.values()) <= batches_of.MAX_IDLE_BYTES
    batches_of._idle.clear()
    with batches_of.column_memory(["value"]) as memory:
        memory.take("value", batches_of.MAX_IDLE_BYTES + 1)
    assert not batches_of._idle


def test_polars_passes_columns_predicates_and_rows(market: Market) -> None:
    quotes = of_polars.scan_aeron(market.path, market.recording, sbe=SCHEMA, message="Quote")
    expected = pl.DataFrame(of(market, market.recording, sbe=SCHEMA, message="Quote").to_table())
    assert quotes.collect().equals(expected)
    assert quotes.collect(engine="streaming").equals(expected)
    assert quotes.head(7).collect().equals(expected.head(7))
    # What was asked for first counts first.
    for predicate in (pl.col("price") > 140, pl.col("position") >= expected["position"][200]):
        for engine in ("in-memory", "streaming"):
            found = quotes.head(300).filter(predicate).collect(engine=engine)
            assert found.equals(expected.head(300).filter(predicate)), (predicate, engine)
            found = quotes.filter(predicate).head(300).collect(engine=engine)
            assert found.equals(expected.filter(predicate).head(300)), (predicate, engine)
    when = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)
    for predicate in (
        pl.col("price") == 100, (pl.col("price") > 140) & (pl.col("position") < 5000), pl.col("symbol") == "XYZ",
        pl.col("timestamp") < when, (pl.col("position") < 5000) | (pl.col("number") > 29_000), pl.col("side") == "SELL",
        pl.col("price").is_between(100, 101), ~(pl.col("price") > 101), pl.col("price").is_in([100, 101]),
        pl.lit(100) == pl.col("price"),
        (pl.col("price") + 1 > 140) & (pl.col("number") < 100), pl.col("symbol").str.starts_with("L"),
        pl.col("price") > 100.5,
    ):  # fmt: skip
        assert quotes.filter(predicate).collect().equals(expected.filter(predicate)), predicate
        assert quotes.filter(predicate).select("number").collect().equals(expected.filter(predicate).select("number"))
    assert 'col("price")' in quotes.filter(pl.col("price") == 100).explain()


def test_what_polars_passes_narrows_what_is_read(market: Market) -> None:
    schema = of(market).schema
    for predicate, expected in (
        (pl.col("position") >= 5, "(position >= 5)"),
        (pl.lit(5, pl.Int64) > pl.col("position"), "(position < 5)"),
        ((pl.col("position") >= 5) & (pl.col("value").bin.size() > 3), "(position >= 5)"),
        (pl.col("position").is_between(5, 6, closed="none"), "((position >= 5) and (position <= 6))"),
        ((pl.col("position") >= 5) | (pl.col("value").bin.size() > 3), "None"),
        (~(pl.col("position") >= 5), "None"),
    ):
        assert str(of_polars.bounds_of(predicate.meta.serialize(format="json"), schema)) == expected
    deep = '{"BinaryExpr":{"op":"And","right":{},"left":' * 50_000
    for text in (
        "",
        "[]",
        "5",
        '{"BinaryExpr": 5}',
        deep,
        '{"BinaryExpr":{"left":{"Column":"position"},"op":"Eq","right":{"Literal":{}}}}',
    ):
        assert of_polars.bounds_of(text, schema) is None


def test_pandas_takes_a_table(market: Market) -> None:
    frame = of_pandas.read_aeron(market.path, market.recording, sbe=SCHEMA, message="Quote", filter="number < 3")
    assert frame["price"].tolist() == [100, 101, 102]
    assert str(frame["timestamp"].dtype) == "datetime64[ns, UTC]"
    arrow = of_pandas.read_aeron(of(market, market.texts, last=2), dtype_backend="pyarrow")
    assert arrow["value"].tolist() == [b"line 498", b"line 499"]
    with pytest.raises(UsageError, match="dtype_backend"):
        of_pandas.read_aeron(market.path, dtype_backend="numpy")


@pytest.mark.parametrize("name", ["pandas", "polars", "duckdb"])
def test_a_library_that_is_not_installed_is_named_with_its_command(
    market: Market, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = builtins.__import__

    def without(wanted: str, *given: Any, **more: Any) -> Any:
        if wanted.split(".", maxsplit=1)[0] == name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return find(wanted, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    module, call = {
        "pandas": (of_pandas, "read_aeron"), "polars": (of_polars, "scan_aeron"), "duckdb": (of_duckdb, "from_aeron"),
    }[name]  # fmt: skip
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'aeron-spark\[{name}\]'"):
        getattr(module, call)(market.path)


QUERIES_WITH_A_LIMIT = {
    "duckdb": "import duckdb; assert duckdb.sql('SELECT position FROM rows LIMIT 1').fetchall() == [(0,)]",
    "duckdb of batches": "import duckdb; b = rows.batches(); assert duckdb.sql('SELECT position FROM b LIMIT 1').fetchall()",
    "scanner": "assert rows.scanner().head(1).num_rows == 1",
    "batches of a scanner": "assert next(rows.scanner().to_batches()).num_rows == 1000",
    "polars of a dataset": "import polars; assert len(polars.scan_pyarrow_dataset(rows).head(1).collect()) == 1",
    "polars": "from aeron_spark.tables.polars import scan_aeron; assert len(scan_aeron(rows).head(1).collect()) == 1",
}


@pytest.mark.parametrize("query", QUERIES_WITH_A_LIMIT)
def test_a_program_ends_while_a_library_reads_ahead(market: Market, query: str) -> None:
    """Its thread is inside of the next batch then: Python aborted the program, or it never ended."""
    ended_well(f"""
import threading
from aeron_spark.tables import scan, scans
take, main = scans._Pass.__next__, threading.get_ident()
def slowly(taken):
    batch = take(taken)
    if threading.get_ident() != main:
        threading.Event().wait(0.2)
    return batch
scans._Pass.__next__ = slowly
rows = scan({str(market.path)!r}, {market.recording}, batch_rows=1000)
{QUERIES_WITH_A_LIMIT[query]}
""")


def test_a_scan_is_a_dataset_of_pyarrow(market: Market) -> None:
    table = of(market)
    few = pc.field("position") < 1000
    assert table.scanner(columns=["position"], filter=few).to_table().num_rows == market.whole.filter(few).num_rows
    doubled = table.scanner(columns={"twice": pc.multiply(pc.field("position"), 2)}, filter=few).to_table()
    assert doubled["twice"][1].as_py() == 2 * market.whole["position"][1].as_py()
    assert table.to_table(columns={"twice": pc.field("position")}).num_rows == COUNT + 500
    assert list(table.to_batches(filter=few))
    assert table.to_reader().read_all().equals(market.whole)
    assert pa.table(table).equals(market.whole)
    assert pl.scan_pyarrow_dataset(table).select(pl.len()).collect().item() == COUNT + 500
    assert of_polars.scan_aeron(table).select(pl.len()).collect().item() == COUNT + 500
    assert table.scanner(columns=[]).count_rows() == COUNT + 500
    for name in ("get_fragments", "take", "sort_by", "join", "join_asof", "replace_schema", "__reduce__"):
        with pytest.raises(UsageError, match="to_table"):
            getattr(table, name)()
    assert table.partition_expression is None


def test_a_union_of_datasets_is_an_error_and_no_crash(market: Market) -> None:
    """It goes past every method of Python to the dataset of C++."""
    table = of(market)
    with pytest.raises(FileNotFoundError, match=r"a scan of recordings has no files .* take to_table"):
        dataset.UnionDataset(table.schema, [table]).to_table()


def test_nothing_of_a_dataset_reaches_the_one_of_cplusplus(market: Market) -> None:
    """There is none of our rows."""
    inherited = {name for name in dir(dataset.Dataset) if name not in dir(object)}
    assert inherited - set(vars(Scan)) <= {"__pyx_vtable__", "_scan_options"}
    assert "where" in repr(of(market, filter="position > 5"))


# -- what is wrong with the recordings -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_segment_that_is_missing_ends_the_rows_before_it(market: Market, tmp_path: Path, threads: int) -> None:
    for file in market.path.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / f"{market.recording}-1048576.rec").unlink()
    rows, failure = until_failure(scan(tmp_path, market.recording, threads=threads))
    assert f"{market.recording}-1048576.rec" in failure
    expected = [one for one in market.whole["position"].to_pylist()[:COUNT] if one < 1048576]
    assert [row["position"] for row in rows] == expected
    with pytest.raises(DataLossError):
        scan(tmp_path, market.recording, threads=threads).to_table()
    late = scan(tmp_path, market.recording, threads=threads, filter="position >= 2097152")
    assert late.count_rows() == sum(one >= 2097152 for one in market.whole["position"].to_pylist()[:COUNT])


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_store_that_gives_fewer_bytes_ends_the_rows_before_them(market: Market, tmp_path: Path, threads: int) -> None:
    for file in market.path.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    store = ObjectFolder(fs.LocalFileSystem(), str(tmp_path))
    whole = [
        one
        for one in market.whole["position"].to_pylist()[:COUNT]
        if one < store.extent(market.recording).limit_position
    ]
    with (tmp_path / f"{market.recording}-1048576.rec").open("r+b") as file:
        file.truncate(200_000)
    rows, failure = until_failure(scan(store, market.recording, threads=threads))
    assert f"{market.recording}-1048576.rec gave " in failure
    before = [row["position"] for row in rows]
    assert before == whole[: len(before)]
    assert sum(one < 1048576 for one in whole) <= len(before) <= sum(one < 1048576 + 200_000 for one in whole)
    late = scan(store, market.recording, threads=threads, filter="position >= 2097152")
    assert late.to_table()["position"].to_pylist() == [one for one in whole if one >= 2097152]


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataLossError, match=str(tmp_path)):
        scan(tmp_path).to_table()


def test_progress_of_one_thread_has_the_rows(market: Market) -> None:
    seen: list[tuple[int, int, int]] = []
    assert of(market, threads=1).with_progress(lambda *state: seen.append(state)).to_table().num_rows == COUNT + 500
    assert seen[-1] == (seen[-1][1], read_bytes(of(market)), COUNT + 500)


def test_progress_comes_by_piece_and_ends_a_pass(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "PIECE_BYTES", 200_000)
    seen: list[tuple[int, int, int]] = []
    table = of(market).with_progress(lambda done, total, rows: seen.append((done, total, rows)))
    assert table.count_rows() == COUNT + 500
    assert seen == sorted(seen)
    assert len(seen) > 5
    assert seen[-1][0] == seen[-1][1] == read_bytes(of(market))
    assert seen[-1][2] == COUNT + 500

    def cancel(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        of(market).with_progress(cancel).to_table()
    batches = of(market).batches()
    stopping = of(market).with_progress(lambda *_: batches.close())
    batches = stopping.batches()
    assert sum(batch.num_rows for batch in batches) < COUNT
