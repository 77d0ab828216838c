"""Options of Spark's Kafka source and sink, which people give out of habit, and what does the same here."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["READING", "WRITING", "kafka_habit"]

_NO_CONSUMER = "there are no consumers here whose settings it could be: leave it out"
_NO_GROUP = "there are no consumer groups here, a query continues from its checkpoint alone: leave it out"
_NO_RETRY = "nothing is fetched again here, Spark tries failed tasks again: leave it out"

READING: Mapping[str, str] = {
    "assign": "choose recordings by recordingIds",
    "endingOffsets": "give endingPositions: latest, or JSON of recording id to position",
    "endingOffsetsByTimestamp": "give endingTimestamp, one for all recordings",
    "fetchOffset.numRetries": _NO_RETRY,
    "fetchOffset.retryIntervalMs": _NO_RETRY,
    "groupIdPrefix": _NO_GROUP,
    "includeHeaders": "name what is wanted beside the value in columns, such as columns=position,reserved_value,value",
    "kafka.bootstrap.servers": "give the archive's folder by load(path), or controlChannel of an archive on another machine",
    "kafka.group.id": _NO_GROUP,
    "kafkaConsumer.pollTimeoutMs": _NO_CONSUMER,
    "maxOffsetsPerTrigger": "give maxMessagesPerTrigger, or maxBytesPerTrigger",
    "maxRecordsPerPartition": "give maxBytesPerPartition, or minPartitions",
    "minOffsetsPerTrigger": "give minBytesPerTrigger, with maxTriggerDelay",
    "startingOffsets": "give startingPositions: earliest, latest, or JSON of recording id to position",
    "startingOffsetsByTimestamp": "give startingTimestamp, one for all recordings",
    "startingOffsetsByTimestampStrategy": "startingTimestamp begins at the first message at or after the time: leave it out",
    "subscribe": "choose recordings by streamId, channel or recordingIds",
    "subscribePattern": "choose recordings by channelPattern",
    "topic": "choose recordings by streamId, channel or recordingIds",
}
WRITING: Mapping[str, str] = {
    "includeHeaders": "a message has 8 bytes beside its value, the column reserved_value: leave it out",
    "kafka.bootstrap.servers": "give channel, where messages are published, and recordTo, the folder of their archive",
    "topic": "give streamId, or a column stream_id where rows go to several",
}


def kafka_habit(option: str, habits: Mapping[str, str]) -> str:
    """The hint for an option of the Kafka source or sink; empty for others."""
    known = next((name for name in habits if name.lower() == option.lower()), None)
    if known is not None:
        return f", which is of Spark's Kafka source: {habits[known]}"
    if option.lower().startswith("kafka."):
        return f", which is of Spark's Kafka source: {_NO_CONSUMER}"
    return ""
