"""The columns of a scan, and how a source's batches become its rows: times, SBE fields, filter, and only what is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.segments import READ_COLUMNS
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.batch import FIELDS, RECORDING_ID, ColumnMemory, column_memory, with_column
from aeron_spark.errors import UsageError
from aeron_spark.names import check_columns
from aeron_spark.tables.clock import MERGE_TIME, TIMESTAMP, Clock
from aeron_spark.tables.dictionaries import as_dictionary, with_dictionary
from aeron_spark.tables.filters import NO_TIMES, fields_of, rows_of
from aeron_spark.tables.payload import Decoded, SbeColumns
from aeron_spark.tables.pruning import Pruner

__all__ = ["Layout", "RowMaker"]


class Layout:
    """Every column that a scan can have. A field of the SBE schema hides one of ours, which then has another name."""

    def __init__(self, *, is_recorded: bool, clock: Clock | None, sbe: SbeColumns | None) -> None:
        self.clock, self.sbe = clock, sbe
        fields = {**({RECORDING_ID.name: RECORDING_ID} if is_recorded else {}), **FIELDS}
        if clock is not None:
            fields[TIMESTAMP] = clock.field
        of_sbe = {} if sbe is None else {field.name: field for field in sbe.schema}
        self.of_sbe = of_sbe.keys()
        #: Our columns, by their names here.
        ours = {self.own(name): field.with_name(self.own(name)) for name, field in fields.items()}
        self.of_message = ours.keys()
        shown = [(of_sbe if name in of_sbe else ours)[name] for name in fields | of_sbe]
        self.schema = pa.schema(shown + [field for name, field in ours.items() if name not in fields])
        usual = [name for name in (*READ_COLUMNS[:-1], TIMESTAMP, READ_COLUMNS[-1]) if name in self.of_message]
        self.usual = usual if sbe is None else [*(name for name in usual if name != "value"), *of_sbe]

    def own(self, name: str) -> str:
        """The name here of one of our columns: that which no field of the SBE schema has."""
        while name in self.of_sbe:
            name = f"message:{name}"
        return name

    def schema_of(self, columns: Sequence[str], *, dictionaries: bool) -> pa.Schema:
        """Of rows with these columns, with text in dictionaries or not."""
        fields = [self.schema.field(name) for name in columns]
        return pa.schema([with_dictionary(one) for one in fields] if dictionaries else fields)

    def check(self, columns: Sequence[str]) -> None:
        """UsageError names a column that there is not."""
        if TIMESTAMP in columns and TIMESTAMP not in self.schema.names:
            raise UsageError(NO_TIMES)
        check_columns(columns, self.schema.names)


class RowMaker:
    """Makes the rows of passes: `columns` of the messages that `expression` selects. Any number of threads.

    `dictionaries`: text is in them. `merges`: the rows have the column `MERGE_TIME` besides.
    """

    def __init__(
        self,
        layout: Layout,
        columns: Sequence[str],
        expression: pc.Expression | None,
        *,
        dictionaries: bool = False,
        merges: bool = False,
    ) -> None:
        self._layout = layout
        self._columns = [*columns, MERGE_TIME.name] if merges else list(columns)
        self._expression = expression
        of_filter = set() if expression is None else set(fields_of(expression, layout.schema))
        used = {*columns, *of_filter}
        self.schema = layout.schema_of(columns, dictionaries=dictionaries)
        self.schema = self.schema.append(MERGE_TIME) if merges else self.schema
        self._has_dictionaries = dictionaries
        self._own = {name: layout.own(name) for name in (RECORDING_ID.name, *FIELDS, TIMESTAMP)}
        #: Our columns of the filter, which can narrow what is read, by the names that they have where nothing hides them.
        self.narrowing = {name for name, own in self._own.items() if own in of_filter}
        of_pruner = pa.schema([field for field in layout.schema if field.name in of_filter])
        self.pruner = Pruner(
            expression, of_pruner, is_never_null=of_filter <= layout.of_message - {layout.own(TIMESTAMP)}
        )
        sbe = layout.sbe
        self._of_sbe = sorted(used & layout.of_sbe)
        self._decodes = sbe is not None and (bool(self._of_sbe) or not sbe.is_row_per_message)
        self._has_times, self._merges = layout.own(TIMESTAMP) in used, merges
        self._clock = layout.clock if self._has_times or merges else None
        #: The clock, where it takes the times of an archive's index, which come later than the messages.
        self.index_clock = self._clock if self._clock is not None and self._clock.kind == "index" else None
        self._kept = [name for name in layout.schema.names if name in used & layout.of_message]
        self._kept += [MERGE_TIME.name] if merges else []
        self._of_filter = [name for name in layout.schema.names if name in of_filter]
        self._filters_first = not of_filter & layout.of_sbe
        needed = [name for name, own in self._own.items() if own in self._kept and name != TIMESTAMP]
        self._own[MERGE_TIME.name] = MERGE_TIME.name
        needed += [self._clock.column] if self._clock is not None else []
        needed += ["value", "position"] if self._decodes else []
        #: Columns of a source's batches; one is needed to count rows by.
        self.natives = list(dict.fromkeys(needed)) or ["position"]
        self._passing = [name for name in self.natives if self._own[name] not in self._kept]
        self._templates = None
        if self._decodes and sbe is not None and expression is not None:
            self._templates = sbe.possible_templates(self.pruner.possible)

    def memory(self) -> AbstractContextManager[ColumnMemory]:
        """Memory for the columns of a reader's batches, each of which has gone through `make` before the next is read.

        It is for the columns that no row keeps. Columns of SBE and times are computed from them, and so are copies.
        """
        return column_memory(self._passing)

    def make(
        self, source: RecordingSource | None, recording: Recording | None, batch: pa.RecordBatch, *, is_filtered: bool
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a source's batch, in one as a rule. DataLossError follows them where a message cannot be decoded."""
        expression = self._expression if is_filtered else None
        if self._clock is not None:
            times = self._clock.times(source, recording, batch)
            if self._has_times:
                batch = with_column(batch, self._clock.field, self._clock.as_column(times))
            if self._merges:
                batch = with_column(batch, MERGE_TIME, times)
        batch = pa.RecordBatch.from_arrays(batch.columns, [self._own[name] for name in batch.schema.names])
        if expression is not None and self._filters_first:
            batch = self._selected(batch, expression)
        if not self._decodes or not batch.num_rows:
            yield from self._rows(batch)
            return
        for made, failure in self._decoded(recording, batch):
            if expression is not None and not self._filters_first:
                made = self._selected(made, expression)  # noqa: PLW2901
            yield from self._rows(made)
            if failure is not None:
                raise failure

    def _rows(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if batch.num_rows:
            arrays = [batch.column(name) for name in self._columns]
            if self._has_dictionaries:
                arrays = [as_dictionary(one) for one in arrays]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _selected(self, batch: pa.RecordBatch, expression: pc.Expression) -> pa.RecordBatch:
        """The rows of the filter; without a copy where they follow each other and are most of the batch."""
        rows = rows_of(batch.select(self._of_filter), expression)
        count = len(rows)
        if 2 * count <= batch.num_rows or rows[-1].as_py() - rows[0].as_py() >= count:
            return batch.take(rows)
        return batch.slice(rows[0].as_py(), count)

    def _decoded(
        self, recording: Recording | None, batch: pa.RecordBatch
    ) -> Iterator[tuple[pa.RecordBatch, Exception | None]]:
        sbe = self._layout.sbe
        assert sbe is not None  # noqa: S101 - as _decodes says
        value, position = self._own["value"], self._own["position"]
        if self._templates is not None:
            batch = batch.filter(pa.array(sbe.of_templates(batch.column(value), self._templates)))
        for found in sbe.decode(batch.column(value), self._of_sbe):
            failure = None
            if found.failure is not None:
                at = batch.column(position)[found.failed_message].as_py()
                where = "" if recording is None else f"recording {recording.recording_id}: "
                failure = found.failure(f"{where}the message at position {at}")
            yield self._joined(batch, found), failure

    def _joined(self, batch: pa.RecordBatch, found: Decoded) -> pa.RecordBatch:
        """The columns of the messages beside those of SBE."""
        kept = batch.select(self._kept)
        if not found.is_one_each and not np.array_equal(found.messages, np.arange(batch.num_rows)):
            kept = kept.take(pa.array(found.messages))
        columns = [*kept.columns, *(found.batch.column(name) for name in self._of_sbe)]
        names = [*self._kept, *self._of_sbe]
        return pa.RecordBatch.from_arrays(columns, names) if names else batch.take(pa.array(found.messages))
