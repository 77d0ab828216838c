"""What the Spark source logs, with its facts: query, batch, recording and positions.

Each record has the attribute ``aeron``, a dict of what its text names: ``path``, ``recording_id``, ``position`` and so on, and
within a task of a streaming query ``query_id`` and ``batch_id``. Bytes and positions are integers.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

__all__ = ["LOG", "facts"]

#: Messages for operators. Spark's workers write them to stderr, which Spark keeps in the logs of driver and executors.
LOG = logging.getLogger("aeron_spark.spark")

#: Names of Spark's local properties of a task, and of the facts in a record.
_OF_TASK = {"sql.streaming.queryId": "query_id", "streaming.sql.batchId": "batch_id"}


def facts(**values: object) -> dict[str, dict[str, object]]:
    """The argument ``extra`` of a call of `LOG`."""
    return {"aeron": values}


class _OfTask(logging.Filter):
    """Adds the query and the batch for which Spark runs a task."""

    def filter(self, record: logging.LogRecord) -> bool:
        given = record.__dict__.setdefault("aeron", {})
        if (context := _task_context()) is not None:
            for key, name in _OF_TASK.items():
                if (value := context.getLocalProperty(key)) is not None:
                    given.setdefault(name, int(value) if name == "batch_id" else value)
        return True


class _Form(logging.Formatter):
    """A line an event, in UTC; behind its text the query and the batch, which a text of a task cannot know."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        given = record.__dict__.get("aeron", {})
        of_task = " ".join(f"{name}={given[name]}" for name in _OF_TASK.values() if name in given)
        return f"{super().format(record)}{of_task and f' ({of_task})'}"


def _task_context() -> Any | None:
    """Spark's, where this process runs a task: a program that only logs does not load pyspark for it."""
    module = sys.modules.get("pyspark.taskcontext")
    return None if module is None else module.TaskContext.get()


def _is_worker() -> bool:
    """Whether Spark started this process; a program or a notebook of the user prints only what its own handlers ask for."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")


def _to_stderr() -> None:
    # Python workers configure no logging; an application that does, gets the records through its own handlers.
    if _is_worker() and not LOG.hasHandlers():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Form("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S"))
        LOG.addHandler(handler)
        LOG.setLevel(logging.INFO)


LOG.addFilter(_OfTask())
_to_stderr()
