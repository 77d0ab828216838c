"""The kinds of table of docs/how-to/lakehouse.md, as lake_kills.py fills, kills and reads them.

Delta and Iceberg land by the page's own code, taken from its text: what users copy is what is killed. Each kind also says by
its files how far a batch is, since the process that writes it is looked at from outside.
"""

from __future__ import annotations

import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.kit import pages

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Land = Callable[["DataFrame", int], None]

#: Columns of a row that is no dead letter are those of the query without these.
OF_ERRORS = ("sbe_error", "sbe_error_at", "sbe_raw")
MOMENTS = ("writing", "landed", "planned", "committed", "starting")


def of_page(name: str) -> dict[str, Any]:
    """What the block with a function defines, without the query that it starts; its paths are those of the working folder."""
    code, query, _ = pages.block("how-to/lakehouse.md", "python", f"def {name}(").partition("\nquery = ")
    assert query
    scope: dict[str, Any] = {}
    exec(compile(code, "docs/how-to/lakehouse.md", "exec"), scope)  # noqa: S102 - the page's own
    return scope


class Parquet:
    """`Landing`; the table is compacted after every second batch."""

    moments = (*MOMENTS[:2], "compacting", *MOMENTS[2:])

    def __init__(self, work: Path) -> None:
        self.folder = work / "lake" / "quotes"

    def lander(self, spark: SparkSession) -> Land:
        from aeron_spark.spark.lake import Landing

        table = Landing(self.folder)

        def land(rows: DataFrame, batch_id: int) -> None:
            table.land(rows, batch_id)
            if batch_id % 2 == 0:
                table.compact(spark)

        return land

    def read(self, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
        """Rows, and dead letters."""
        from aeron_spark.spark.lake import Landing

        table = Landing(self.folder)
        dead = table.dead_letters(spark)
        assert dead is not None
        return table.table(spark), dead

    def unfinished(self, moment: str) -> set[str]:
        """Files that are there while a batch is written, or folders are put together."""
        kind = {"writing": "landing", "compacting": "compacting"}[moment]
        return {path.name for path in self.folder.glob(f"_{kind}-*")}

    def landed(self) -> int:
        """The newest batch of the table; -1: none."""
        return max((int(path.name.rpartition("-")[2]) for path in self.folder.glob("batches-*")), default=-1)


class _OfPage(ABC):
    """A table whose rows and dead letters are in one, and which is read as Arrow."""

    moments = MOMENTS

    def __init__(self, work: Path) -> None:
        self.work = work

    @abstractmethod
    def arrow(self) -> pa.Table:
        """All rows, by the kind's own reader."""

    def read(self, spark: SparkSession) -> tuple[DataFrame, DataFrame]:
        """Rows, and dead letters: what the kind's own reader gives, carried to Spark by a file."""
        from pyarrow import parquet

        parquet.write_table(self.arrow(), self.work / "read.parquet")
        every = spark.read.parquet(str(self.work / "read.parquet"))
        return every.where("sbe_error IS NULL").drop(*OF_ERRORS), every.where("sbe_error IS NOT NULL")


class Delta(_OfPage):
    def lander(self, spark: SparkSession) -> Land:
        land: Land = of_page("to_delta")["to_delta"]
        return land

    def arrow(self) -> pa.Table:
        import deltalake

        return deltalake.DeltaTable("lake/delta").to_pyarrow_table()

    def unfinished(self, moment: str) -> set[str]:
        """Files of rows that no commit names yet, or ever: between both are milliseconds."""
        there = {path.name for path in (self.work / "lake" / "delta").glob("*.parquet*")}
        log = (self.work / "lake" / "delta" / "_delta_log").glob("[0-9]*[0-9].json")
        commits = "".join(path.read_text("utf-8") for path in log) if there else ""
        return {name for name in there if name not in commits}

    def landed(self) -> int:
        """Each batch is a commit, and its number the table's version; -1: none."""
        newest = max((self.work / "lake" / "delta" / "_delta_log").glob("[0-9]*[0-9].json"), default=None)
        return int(newest.stem) if newest else -1


class Iceberg(_OfPage):
    def lander(self, spark: SparkSession) -> Land:
        (self.work / "lake").mkdir(exist_ok=True)
        land: Land = of_page("to_iceberg")["to_iceberg"]
        return land

    def arrow(self) -> pa.Table:
        table: pa.Table = of_page("to_iceberg")["catalog"].load_table("market.quotes").scan().to_arrow()
        return table

    def unfinished(self, moment: str) -> set[str]:
        """Files of rows, which the catalog's next metadata name later."""
        return {path.name for path in (self.work / "lake" / "iceberg").rglob("*.parquet")}

    def landed(self) -> int:
        """Each batch is a snapshot in the metadata of the catalog; -1: none, or the catalog is being written.

        It is read without a lock: a lock of ours would be in the way of the query, which may be stopped meanwhile.
        """
        catalog = self.work / "lake" / "iceberg.db"
        if not catalog.exists():
            return -1
        connection = sqlite3.connect(f"{catalog.as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            row = connection.execute("SELECT metadata_location FROM iceberg_tables").fetchone()
        except sqlite3.DatabaseError:
            return -1
        finally:
            connection.close()
        metadata = json.loads(Path(urlsplit(row[0]).path).read_text("utf-8")) if row else {}
        return len(metadata.get("snapshots", [])) - 1


KINDS: dict[str, type[Parquet | Delta | Iceberg]] = {"parquet": Parquet, "delta": Delta, "iceberg": Iceberg}
