"""Decides whether missing data fails a query (``failOnDataLoss``), and names the file that holds a position."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

from aeron_spark.archive.segment_files import segment_base
from aeron_spark.archive.segments import Recording
from aeron_spark.errors import DataLossError
from aeron_spark.spark.planning.options import ReadOptions

__all__ = ["LOG", "goes_on", "lost", "segment_path"]

#: Messages for operators. Spark's workers write them to stderr, which Spark keeps in the logs of driver and executors.
LOG = logging.getLogger("aeron_spark.spark")


def _is_worker() -> bool:
    """Whether Spark started this process; a program or a notebook of the user prints only what its own handlers ask for."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")


def _to_stderr() -> None:
    # Python workers configure no logging; an application that does, gets the records through its own handlers.
    if _is_worker() and not LOG.hasHandlers():
        handler = logging.StreamHandler(sys.stderr)
        form = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
        form.converter = time.gmtime
        handler.setFormatter(form)
        LOG.addHandler(handler)
        LOG.setLevel(logging.INFO)


_to_stderr()


def segment_path(options: ReadOptions, recording: Recording, position: int) -> Path:
    """The segment file that holds, or held, a position, even one before the recording's start."""
    return Path(options.path) / f"{recording.recording_id}-{max(segment_base(recording, position), 0)}.rec"


def lost(options: ReadOptions, text: str) -> None:
    """Raises DataLossError; with ``failOnDataLoss=false`` logs a warning and the query goes on."""
    if options.fail_on_data_loss:
        raise DataLossError(f"{text}; failOnDataLoss=false goes on without")
    LOG.warning("%s; going on, as failOnDataLoss=false", text)


def goes_on(options: ReadOptions) -> bool:
    """Whether planning has to expect broken bytes."""
    return options.skip_corruption or not options.fail_on_data_loss
