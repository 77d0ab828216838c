"""What the running pyspark offers a data source in Python. Nothing else in the package tells one pyspark from another.

A feature is there if pyspark has the names that bring it, so a distribution that has them earlier counts as what it is; the
version is for error texts and pages. Readers and writers derive from the classes here, and mean the same on each pyspark:

- ``StreamReader``. With admission control Spark says where a micro-batch begins and how much it may take. Without, Spark asks
  for the newest offset alone, and the micro-batch takes all there is. A reader knows the begin all the same: Spark asks the
  same reader to plan each micro-batch, and, after a restart, an empty one at the checkpoint's last offset first.
- ``StreamArrowWriter`` gets Arrow batches. Where Spark has no such class, its task still looks for the class of the batch
  sink, so both together do the same.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from aeron_spark.extras import missing

try:
    import pyspark
except ModuleNotFoundError as error:
    raise missing(error, "spark") from None
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamReader, DataSourceStreamWriter, InputPartition
from pyspark.sql.pandas import types as conversion
from pyspark.sql.types import StructType

try:
    from pyspark.sql.streaming import datasource as admission
except ImportError:
    admission = None  # type: ignore[assignment]

from aeron_spark.errors import UsageError
from aeron_spark.spark.planning.ranges import Budget

__all__ = [
    "ADMISSION_CONTROL",
    "FEATURES",
    "FILTER_PUSHDOWN",
    "STREAM_ARROW",
    "Feature",
    "StreamArrowWriter",
    "StreamReader",
    "to_arrow_schema",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Something that not every pyspark offers; ``since`` is the first release of Apache Spark that does."""

    name: str
    since: str
    is_offered: bool

    @property
    def lack(self) -> str:
        """For an error: what is not there, and from which version it is."""
        return f"Spark has {self.name} from {self.since} on, and this is {pyspark.__version__}"


FILTER_PUSHDOWN = Feature(
    name="filter pushdown for Python sources", since="4.1", is_offered=hasattr(datasource, "Filter")
)
STREAM_ARROW = Feature(
    name="Arrow writers of streams", since="4.1", is_offered=hasattr(datasource, "DataSourceStreamArrowWriter")
)
ADMISSION_CONTROL = Feature(name="limits of micro-batches for Python sources", since="4.2", is_offered=bool(admission))
FEATURES = (FILTER_PUSHDOWN, STREAM_ARROW, ADMISSION_CONTROL)


class _Planning(DataSourceStreamReader):
    """What a reader answers on every pyspark. Offsets are JSON objects."""

    @abstractmethod
    def limit(self) -> Budget:
        """What Spark shall allow a micro-batch: a bound of bytes, or one of messages."""

    @abstractmethod
    def next_offset(self, start: dict[str, object], limit: Budget) -> dict[str, object]:
        """The end of the micro-batch that begins at ``start``; ``start`` itself where there is nothing to read."""

    @abstractmethod
    def plan(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        """Partitions of the micro-batch (start, end]."""

    @abstractmethod
    def newest_offset(self) -> dict[str, object]:
        """How far the source goes now, for the query's progress."""

    @abstractmethod
    def pin(self) -> None:
        """What comes later is not of this available-now run."""


class WholeStreamReader(_Planning):
    """Spark before it had limits of micro-batches asks for the newest offset alone."""

    #: Where the last micro-batch that Spark planned has ended.
    _reached: dict[str, object] | None = None

    def latestOffset(self) -> dict[str, object]:  # type: ignore[override]
        """The end of all there is. Spark's own available-now run takes that of its begin, and has one micro-batch."""
        start = self.initialOffset() if self._reached is None else self._reached
        return self.next_offset(start, Budget(max_bytes=None, max_messages=None))

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        """As planned."""
        planned = self.plan(start, end)
        # What the JVM's engine asks for in place of an end (`reading/stream.py`) is no offset, and has no version.
        self._reached = end if "version" in end else start
        return planned


if admission:

    class StreamReader(_Planning, admission.SupportsTriggerAvailableNow):
        """Spark says where a micro-batch begins, and how much it may take."""

        def getDefaultReadLimit(self) -> admission.ReadLimit:
            """The limit that Spark passes on."""
            limit = self.limit()
            if limit.max_messages is not None:
                return admission.ReadMaxRows(limit.max_messages)
            return admission.ReadAllAvailable() if limit.max_bytes is None else admission.ReadMaxBytes(limit.max_bytes)

        def latestOffset(self, start: dict[str, object], limit: admission.ReadLimit) -> dict[str, object]:
            """The end of the next micro-batch, within the limit."""
            return self.next_offset(start, _budget_of(limit))

        def reportLatestOffset(self) -> dict[str, object]:
            """The lag is its distance from the batch's end offset."""
            return self.newest_offset()

        def prepareForTriggerAvailableNow(self) -> None:
            """Pins the end once."""
            self.pin()

        def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
            """As planned."""
            return self.plan(start, end)

    def _budget_of(limit: admission.ReadLimit) -> Budget:
        """Other limits are never passed: Spark passes the default one, or all."""
        if isinstance(limit, admission.ReadAllAvailable):
            return Budget(max_bytes=None, max_messages=None)
        if isinstance(limit, admission.ReadMaxBytes):
            return Budget(max_bytes=limit.max_bytes, max_messages=None)
        if isinstance(limit, admission.ReadMaxRows):
            return Budget(max_bytes=None, max_messages=limit.max_rows)
        raise UsageError(f"read limit {type(limit).__name__} cannot be honoured, use bytes or rows")

else:
    StreamReader = WholeStreamReader  # type: ignore[misc,assignment]


if STREAM_ARROW.is_offered:
    StreamArrowWriter = datasource.DataSourceStreamArrowWriter
else:

    class StreamArrowWriter(DataSourceStreamWriter, DataSourceArrowWriter):  # type: ignore[no-redef,misc]
        """See the module's docstring."""


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """Arrow schema of batches as Spark has them, times in UTC."""
    convert: Callable[..., pa.Schema] = conversion.to_arrow_schema
    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(convert).parameters else {}
    return convert(schema, **zone)
