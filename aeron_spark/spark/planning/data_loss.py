"""Decides whether missing data fails a query (``failOnDataLoss``), and names the file that holds a position."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from aeron_spark.archive.segment_files import segment_base
from aeron_spark.archive.segments import Recording
from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.log import LOG, facts
from aeron_spark.spark.planning.options import ReadOptions

__all__ = ["goes_on", "looked_again", "lost", "segment_path"]

_Plan = TypeVar("_Plan")


def segment_path(options: ReadOptions, recording: Recording, position: int) -> Path:
    """The segment file that holds, or held, a position, even one before the recording's start."""
    return Path(options.path) / f"{recording.recording_id}-{max(segment_base(recording, position), 0)}.rec"


def lost(options: ReadOptions, text: str, *, recording_id: int, position: int) -> None:
    """Raises DataLossError; with ``failOnDataLoss=false`` logs a warning and the query goes on."""
    if options.fail_on_data_loss:
        raise DataLossError(f"{text}; failOnDataLoss=false goes on without")
    LOG.warning(
        "%s; going on, as failOnDataLoss=false", text,
        extra=facts(path=options.path, recording_id=recording_id, position=position),
    )  # fmt: skip


def goes_on(options: ReadOptions) -> bool:
    """Whether planning has to expect broken bytes."""
    return options.skip_corruption or not options.fail_on_data_loss


def looked_again(plan: Callable[[], _Plan], again: Callable[[], _Plan]) -> _Plan:
    """A plan; where that fails another one, of what is there by then.

    What is purged while a plan is made is no loss to who has read nothing of it.
    """
    try:
        return plan()
    except (DataLossError, UsageError):
        return again()
