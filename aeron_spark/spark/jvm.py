"""The jar by which Spark's JVM reads recordings itself and gathers rows to write (option ``engine``): how a session gets it.

The package has it where it was built with a JDK; the wheels have it. As a program it prints the jar's path, for spark-submit:

    spark-submit --jars "$(python -m aeron_spark.spark.jvm)" query.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import aeron_spark
from aeron_spark.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["configure", "jar", "real_time"]

NAME = "aeron-spark.jar"


def jar() -> Path:
    """The jar. UsageError where the package was built without, with how to get it."""
    # Built in place, the package lies in two folders.
    for folder in aeron_spark.__path__:
        path = Path(folder, "spark", NAME)
        if path.is_file():
            return path
    raise UsageError(
        f"this installation of aeron_spark has no {NAME}, as it was built without a JDK or pyspark: install a wheel of the "
        f"release, or a JDK of Java 17 or newer and pyspark, and build again: by `make build` in a clone of the repository"
    )


def configure(builder: SparkSession.Builder, *others: str) -> SparkSession.Builder:
    """Give the session that `builder` makes the jar, and `others` beside it: ``spark.jars`` is one setting for all.

    Spark takes jars when its JVM starts: not in a session that there is already, and of Spark Connect, where the server starts.
    """
    return builder.config("spark.jars", ",".join([str(jar()), *others]))


def real_time(writer: DataStreamWriter, duration: str = "5 minutes") -> DataStreamWriter:
    """Set the trigger of Spark's Real-Time Mode: rows arrive in milliseconds, and Spark writes a checkpoint every `duration`.

    As ``writer.trigger(realTime=duration)``, which pyspark 4.1 lacks, and which Spark Connect needs. UsageError,
    with the remedy, where Spark lacks the mode, or the session the jar.
    """
    import pyspark
    from py4j.java_gateway import JavaPackage
    from py4j.protocol import Py4JError, Py4JJavaError

    untyped = cast("Any", writer)
    java = untyped._spark._jvm
    if isinstance(java.aeronspark.Extensions, JavaPackage):
        raise UsageError(
            "Real-Time Mode needs the engine in the JVM, and this session was started without the jar of aeron_spark: make "
            "it by aeron_spark.spark.jvm.configure(builder)"
        )
    try:
        trigger = java.org.apache.spark.sql.streaming.Trigger.RealTime(duration)
    except Py4JJavaError:
        raise  # the duration is wrong
    except Py4JError:
        raise UsageError(
            f"Spark has Real-Time Mode from 4.1 on, and this is {pyspark.__version__}: take a newer one, or "
            f"trigger(processingTime=...)"
        ) from None
    untyped._jwrite = untyped._jwrite.trigger(trigger)
    return writer


if __name__ == "__main__":
    print(jar())  # noqa: T201 - what the program is for
