"""The names of the package `aeron_spark`, which loads this module when the first of them is used."""

from aeron_spark.archive.client import Archive
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.replay import Replay, ReplayLength
from aeron_spark.archive.segments import Extent, Folder, FolderInfo
from aeron_spark.archive.server import ArchiveServer, ArchivingMediaDriver
from aeron_spark.archive.times import TimeIndexInfo, TimePosition
from aeron_spark.channel import ChannelUri
from aeron_spark.client import Client
from aeron_spark.counters import Counter, Counters
from aeron_spark.driver import MediaDriver
from aeron_spark.errors import (
    AeronError,
    ClosedError,
    DataLossError,
    DoubtWarning,
    InternalError,
    PeerError,
    StorageError,
    UsageError,
    WaitTimeoutError,
)
from aeron_spark.publication import ExclusivePublication, Publication
from aeron_spark.subscription import Image, Subscription
from aeron_spark.types import Action, ArchiveErrorCode, Outcome, RecordChecksum, RecordingSignal, SourceLocation

__all__ = [
    "Action",
    "AeronError",
    "Archive",
    "ArchiveErrorCode",
    "ArchiveServer",
    "ArchivingMediaDriver",
    "ChannelUri",
    "Client",
    "ClosedError",
    "Counter",
    "Counters",
    "DataLossError",
    "DoubtWarning",
    "ExclusivePublication",
    "Extent",
    "Folder",
    "FolderInfo",
    "Image",
    "InternalError",
    "MediaDriver",
    "Outcome",
    "PeerError",
    "Publication",
    "RecordChecksum",
    "Recording",
    "RecordingSignal",
    "Replay",
    "ReplayLength",
    "SourceLocation",
    "StorageError",
    "Subscription",
    "TimeIndexInfo",
    "TimePosition",
    "UsageError",
    "WaitTimeoutError",
]
