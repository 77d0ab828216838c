"""Converts a group's entries to rows. Spec: 10 §14.2."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from aeron_spark.errors import UsageError
from aeron_spark.names import nearest


def _steps(path: str) -> list[str]:
    return path.split(".")


def _fields(schema: pa.Schema, group: str) -> list[pa.Field]:
    """The columns, with the group replaced by its entries' columns; a taken name gets the group's name as a prefix."""
    index = schema.get_field_index(group)
    if (
        index < 0
        or not pa.types.is_list(schema.field(index).type)
        or not pa.types.is_struct(schema.field(index).type.value_type)
    ):
        groups = [one.name for one in schema if pa.types.is_list(one.type) and pa.types.is_struct(one.type.value_type)]
        known = ", ".join(groups) or "none"
        raise UsageError(f"explode: there is no group '{group}'; there are {known}{nearest(group, groups)}")
    others = {one.name for one in schema if one.name != group}
    entry = schema.field(index).type.value_type
    inner = [pa.field(f"{group}.{one.name}" if one.name in others else one.name, one.type) for one in entry]
    fields = list(schema)
    return [*fields[:index], *inner, *fields[index + 1 :]]


def exploded_schema(schema: pa.Schema, path: str) -> pa.Schema:
    """The schema of `explode`'s batches. UsageError: the group does not exist."""
    for group in _steps(path):
        schema = pa.schema(_fields(schema, group))
    return schema


def explode(batch: pa.RecordBatch, path: str, error: str) -> tuple[pa.RecordBatch, np.ndarray]:
    """A row for each entry, and for each message with an error; and the index of each row's source row in `batch`."""
    parents = np.arange(batch.num_rows)
    for group in _steps(path):
        index = batch.schema.get_field_index(group)
        column = batch.column(index)
        counts = np.diff(np.asarray(column.offsets))
        counts = np.where(np.asarray(column.is_valid()), counts, 0)
        has_error = np.zeros(len(counts), bool)
        if batch.schema.get_field_index(error) >= 0:
            has_error = np.asarray(batch.column(error).is_valid())
        rows = np.repeat(np.arange(len(counts)), np.where(has_error, 1, counts))
        starts = np.asarray(column.offsets)[:-1]
        firsts = np.cumsum(np.where(has_error, 1, counts)) - np.where(has_error, 1, counts)
        entries = starts[rows] + np.arange(len(rows)) - firsts[rows]
        taken = pa.array(entries, pa.int64(), mask=has_error[rows])
        inner = column.values.take(taken).flatten()
        fields = _fields(batch.schema, group)
        again = pa.array(rows)
        before = [one.take(again) for one in batch.columns[:index]]
        behind = [one.take(again) for one in batch.columns[index + 1 :]]
        batch = pa.RecordBatch.from_arrays([*before, *inner, *behind], schema=pa.schema(fields))
        parents = parents[rows]
    return batch, parents
