"""What the Spark examples share and is not their point: a session, and a stream that is published and recorded."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from aeron_spark import Archive

CHANNEL = "aeron:ipc?term-length=1m"


def session(name: str) -> SparkSession:
    """A Spark session whose workers run this Python, the one that has aeron_spark."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return SparkSession.builder.appName(name).config("spark.ui.enabled", "false").getOrCreate()


def record(
    archive: Archive, stream_id: int, messages: Sequence[bytes], reserved_values: Sequence[int] | None = None
) -> int:
    """Publish messages and have them recorded; returns the recording's id."""
    archive.start_recording(CHANNEL, stream_id)
    with archive.client.add_exclusive_publication(CHANNEL, stream_id) as publication:
        publication.wait_connected(10)
        recording_id = archive.wait_recording("aeron:ipc", stream_id, publication.session_id)
        archive.wait_position(recording_id, publication.offer_batch(messages, reserved_values=reserved_values))
    return recording_id
