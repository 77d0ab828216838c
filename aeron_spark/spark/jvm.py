"""The jar by which Spark's JVM reads recordings itself (option ``engine``): where it is, and how a session gets it.

The package has it where it was built with a JDK; the wheels have it. As a program it prints the jar's path, for spark-submit:

    spark-submit --jars "$(python -m aeron_spark.spark.jvm)" query.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import aeron_spark
from aeron_spark.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["configure", "jar"]

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
        f"release, or a JDK of Java 17 or newer and pyspark, and build again"
    )


def configure(builder: SparkSession.Builder, *others: str) -> SparkSession.Builder:
    """Give the session that `builder` makes the jar, and `others` beside it: ``spark.jars`` is one setting for all.

    Spark takes jars when its JVM starts: not in a session that there is already, and of Spark Connect, where the server starts.
    """
    return builder.config("spark.jars", ",".join([str(jar()), *others]))


if __name__ == "__main__":
    print(jar())  # noqa: T201 - what the program is for
