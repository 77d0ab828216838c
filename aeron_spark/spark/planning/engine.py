"""Which engine reads the planned ranges: Python's workers, or the one in Spark's JVM, where its jar is (``engine``).

Planning is the same for both. What is planned says what the JVM needs to read it, or why it cannot.
"""

from __future__ import annotations

from aeron_spark import __version__
from aeron_spark.archive.times import UNITS_NS
from aeron_spark.errors import UsageError
from aeron_spark.spark.access import SEGMENTS, choose_mode
from aeron_spark.spark.planning.data_loss import goes_on
from aeron_spark.spark.planning.options import JVM, PYTHON, ReadOptions
from aeron_spark.spark.planning.selection import CHECKSUMS

__all__ = ["BATCH_BYTES", "NO_JAR", "check_engine", "check_reads_in_python", "jvm_job", "lack_of"]

NO_JAR = (
    "Spark's JVM was started without the jar of aeron_spark. Give it to the session by "
    'aeron_spark.spark.jvm.configure(builder), or --jars "$(python -m aeron_spark.spark.jvm)" to spark-submit'
)

#: Bytes of messages in a batch: Spark reads them while they are in the processor's cache (docs/decisions/06-reads-in-place.md).
BATCH_BYTES = 1 << 20


def lack_of(options: ReadOptions) -> str | None:
    """The option by which the engine in the JVM does not read; None where it does."""
    if options.engine == PYTHON:
        return "engine=python"
    mode, why = choose_mode(options.access)
    if mode != SEGMENTS:
        return f"access={mode} ({why})"
    if options.payload == "arrow":
        return "payload=arrow"
    return f"timestampFrom=sbe:{options.timestamp_from.field}" if options.timestamp_from.kind == "sbe" else None


def check_engine(options: ReadOptions) -> None:
    """UsageError for ``engine=jvm`` of what it cannot read."""
    lack = lack_of(options) if options.engine == JVM else None
    if lack is not None:
        raise UsageError(
            f"engine=jvm cannot read with {lack}: leave engine out, which then takes Python, or that option"
        )


def check_reads_in_python(options: ReadOptions) -> None:
    """UsageError for ``engine=jvm`` in a task in Python: Spark has no jar, else the task were in the JVM."""
    if options.engine == JVM:
        raise UsageError(f"engine=jvm: {NO_JAR}; or leave engine out, and Python reads")


def jvm_job(options: ReadOptions, decoding: dict[str, object] | str | None) -> dict[str, object]:
    """JSON for the engine in the JVM: how to read ranges, or what of it the engine cannot do.

    ``decoding``: how it makes columns of payloads, or what it cannot do; None if they are columns as they are.
    """
    lack = lack_of(options)
    if lack is None and isinstance(decoding, str):
        lack = f"payload={options.payload} for {decoding}"
    if lack is not None:
        return {"lack": lack, "isJvmAlone": options.engine == JVM}
    unit = options.timestamp_from.unit if options.timestamp_from.kind == "reserved" else ""
    job: dict[str, object] = {
        "version": __version__,
        "path": options.path,
        "aeronDir": options.aeron_dir or "",
        "checksum": int(CHECKSUMS[options.record_checksum]),
        "isStrict": options.on_corruption == "strict",
        "rows": options.rows_per_batch,
        "bytes": options.bytes_per_batch or BATCH_BYTES,
        "reservedUnitNs": UNITS_NS[unit] if unit else 0,
        "payload": options.payload,
        # Python reads what these options are about, where there is any; and payloads that are not as they should be.
        "handsOver": goes_on(options) or options.payload != "binary",
        "isJvmAlone": options.engine == JVM,
    }
    return job if decoding is None else {**job, "sbe": decoding}
