"""Options of writing: where rows go, as what, and what is waited for. Checked on the driver, before a query starts."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from aeron_spark.channel import ChannelUri
from aeron_spark.errors import UsageError
from aeron_spark.spark.planning import kafka_options
from aeron_spark.spark.planning.engine import NO_JAR
from aeron_spark.spark.planning.options import (
    ENGINES,
    JVM,
    _choice,
    _Given,
    _optional_folder,
    _optional_int,
    _parse_bool,
    _parse_int,
    local_folder,
    parse_duration_seconds,
)
from aeron_spark.spark.planning.sbe_options import WRITING, encoder_of, is_schema_text
from aeron_spark.spark.writing.blocks import without_jar

if TYPE_CHECKING:
    from aeron_spark.sbe import Encoder

__all__ = ["WriteOptions"]

AT_LEAST_ONCE, EXACTLY_ONCE = "at-least-once", "exactly-once"
#: Makes ids of batch writes out of the texts that users give.
_WRITE_IDS = UUID("6f1c5b1e-31e8-4f0c-9d4b-7b6c1f3a2e90")
VALUE, ARROW, SBE = "value", "arrow", "sbe"
NO_KEY, RESERVED_KEY, HEADER_KEY = "none", "reserved", "header"
MAX_SUBSCRIBERS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Where rows go: each is one message of an exclusive publication.

    ``publish_timeout`` is in seconds: how long a task waits for subscribers or through back-pressure without progress.
    ``linger`` is in seconds too: how long a worker keeps a publication open for its next task. ``stream_id`` is None only
    where the rows have a column ``stream_id``. An archive records what is published if ``record_to``, its folder, or
    ``control_channel``, where it is asked over the network, is given. ``sync_level`` is as in the archive's settings: 0 leaves
    it to the system when what was recorded reaches the disk. ``write_id`` names a batch write that may be started again.
    ``sbe`` writes the messages of ``payload=sbe``. ``in_blocks``: Spark's JVM gathers the rows (``blocks``).
    """

    channel: str
    stream_id: int | None
    aeron_dir: str | None
    publish_timeout: float
    launch_driver: bool
    record_to: str | None
    control_channel: str | None
    control_stream_id: int | None
    archive_credentials_file: str | None
    payload: str
    key: str
    await_subscribers: int
    linger: float
    guarantee: str
    sync_level: int
    write_id: UUID | None
    sbe: Encoder | None
    in_blocks: bool

    NAMES = (
        "channel",
        "streamId",
        "aeronDir",
        "launchDriver",
        "publishTimeout",
        "recordTo",
        "controlChannel",
        "controlStreamId",
        "archiveCredentialsFile",
        "payload",
        "key",
        "awaitSubscribers",
        "linger",
        "guarantee",
        "syncLevel",
        "writeId",
        "engine",
        *WRITING,
    )

    @classmethod
    def parse(
        cls, options: Mapping[str, str], columns: Collection[str] = ("value",), *, streaming: bool = False
    ) -> WriteOptions:
        """Checks everything that can be checked without a driver; raises UsageError. ``columns`` are those of the rows."""
        options, in_blocks = without_jar(options)
        if any(name.lower() == "path" for name in options):
            raise UsageError(
                "a sink publishes and has no path: leave it out of save(), start() and a view to INSERT INTO; recordTo names "
                "the archive's folder where what is published is recorded"
            )
        given = _Given(options, cls.NAMES, kafka_options.WRITING)
        if _choice(given, "engine", ENGINES) == JVM and not in_blocks:
            raise UsageError(f"engine=jvm: {NO_JAR}; or leave engine out, and Python takes the rows as they are")
        payload = _choice(given, "payload", (VALUE, ARROW, SBE))
        key = _choice(given, "key", (NO_KEY, RESERVED_KEY, HEADER_KEY))
        sbe = _sbe_encoder(given) if payload == SBE else None
        if payload != SBE:
            for name in WRITING:
                given.refuse(name, "it is for payload=sbe")
        routing = set() if payload == ARROW else set(columns) - set(sbe.message.names if sbe is not None else ())
        if key == RESERVED_KEY and "reserved_value" in routing:
            raise UsageError(
                "key=reserved writes the reserved value: drop the column reserved_value, or take key=header"
            )
        guarantee = _choice(given, "guarantee", (AT_LEAST_ONCE, EXACTLY_ONCE))
        given.exclusive("recordTo", "controlChannel")
        control = _control_channel(given)
        _check_guarantee(given, guarantee, streaming=streaming)
        sync_level = _parse_int("syncLevel", given.text("syncLevel") or "0", 0, 2)
        if sync_level > 0 and control is not None:
            raise UsageError(
                f"syncLevel={sync_level} needs the archive's folder, recordTo: an archive that is asked over the network syncs "
                f"by its own setting, give it aeron.archive.file.sync.level={sync_level} and leave syncLevel out"
            )
        write_id = given.text("writeId")
        stream_id = _optional_int(given, "streamId", -(1 << 31), (1 << 31) - 1)
        if stream_id is None and "stream_id" not in routing:
            raise UsageError("option streamId is missing: give the stream to publish to, or a column stream_id")
        record_to = _optional_folder(given, "recordTo")
        awaited = _parse_int("awaitSubscribers", given.text("awaitSubscribers") or "1", 1, MAX_SUBSCRIBERS)
        return cls(
            channel=awaiting_channel(
                given.text("channel") or "aeron:ipc", awaited, is_spied=_is_beside(record_to, control)
            ),
            stream_id=stream_id,
            aeron_dir=_optional_folder(given, "aeronDir"),
            publish_timeout=parse_duration_seconds("publishTimeout", given.text("publishTimeout") or "30s"),
            launch_driver=_parse_bool("launchDriver", given.text("launchDriver") or "true"),
            record_to=record_to,
            control_channel=control,
            control_stream_id=_optional_int(given, "controlStreamId", -(1 << 31), (1 << 31) - 1),
            archive_credentials_file=given.text("archiveCredentialsFile"),
            payload=payload,
            key=key,
            await_subscribers=awaited,
            linger=parse_duration_seconds("linger", given.text("linger") or "10s", may_be_zero=True),
            guarantee=guarantee,
            sync_level=sync_level,
            write_id=None if write_id is None else uuid5(_WRITE_IDS, write_id),
            sbe=sbe,
            in_blocks=in_blocks,
        )

    @property
    def archive(self) -> str | None:
        """What names the archive that records; None without one."""
        return self.record_to or self.control_channel

    @property
    def is_spied(self) -> bool:
        """Whether the archive that records hears the publication's own driver, and not the network."""
        return _is_beside(self.record_to, self.control_channel)


def _is_beside(record_to: str | None, control: str | None) -> bool:
    return record_to is not None or (control is not None and ChannelUri.parse(control).media == "ipc")


def _check_guarantee(given: _Given, guarantee: str, *, streaming: bool) -> None:
    if streaming:
        given.refuse(
            "writeId",
            "it names a batch write; a stream's batches are named by the query's id, which its checkpoint keeps, and their "
            "numbers: leave it out",
        )
    if guarantee == EXACTLY_ONCE:
        if given.text("recordTo") is None and given.text("controlChannel") is None:
            raise UsageError(
                "guarantee=exactly-once needs an archive that keeps rows and ledger: recordTo, its folder, or controlChannel"
            )
        return
    for name in ("syncLevel", "writeId"):
        if given.text(name) is not None:
            raise UsageError(f"option {name} is for guarantee=exactly-once")


def _control_channel(given: _Given) -> str | None:
    """Where a remote archive is asked to record; it must receive what is published."""
    text = given.text("controlChannel")
    if text is None:
        for name in ("controlStreamId", "archiveCredentialsFile"):
            given.refuse(name, "it is for an archive that is asked over the network, give controlChannel as well")
        return None
    control, channel = ChannelUri.parse(text), ChannelUri.parse(given.text("channel") or "aeron:ipc")
    if control.media == "udp" and channel.media != "udp":
        raise UsageError(
            f"controlChannel={text}: the archive there does not hear {channel}, give a channel that ends at it, like "
            f"aeron:udp?endpoint=archive-host:8020"
        )
    return str(control)


def _sbe_encoder(given: _Given) -> Encoder:
    text = given.required("sbeSchema", "payload=sbe needs it, the path or text of the schema's XML").strip()
    return encoder_of(given, text if is_schema_text(text) else local_folder("sbeSchema", text))


def awaiting_channel(text: str, awaited: int, *, is_spied: bool) -> str:
    """The channel, such that a publication on it is connected only when ``awaited`` receivers are.

    Over IPC subscribers can be counted one by one. Over UDP the driver reports no more than "connected"; its flow control
    "min" can require a group size. An archive beside the publication's driver is a spy (``is_spied``) over UDP, and
    counts as the one subscriber only where the channel counts spies as connected.
    """
    channel = ChannelUri.parse(text)
    if channel.is_spy:
        raise UsageError(f"channel {text!r} is a spy's: nobody can publish on it")
    if channel.media == "udp" and awaited == 1 and is_spied and "ssc" not in channel.params:
        return str(channel.with_params(ssc="true"))
    if channel.media == "ipc" or awaited == 1:
        return str(channel)
    if not _has_group(channel):
        raise UsageError(
            f"awaitSubscribers={awaited}: channel {text!r} has one receiver, it is neither multicast nor MDC"
        )
    if "fc" in channel.params:
        raise UsageError(
            f"awaitSubscribers={awaited}: channel {text!r} has its own flow control, give the group's size there"
        )
    return str(channel.with_params(fc=f"min,g:/{awaited}"))


def _has_group(channel: ChannelUri) -> bool:
    if "control" in channel.params or "control-mode" in channel.params:
        return True
    host = channel.params.get("endpoint", "").rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_multicast
    except ValueError:
        return False
