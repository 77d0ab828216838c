"""For tests of programs that use Aeron or `format("aeron")`: servers, recordings, a Spark session, differences of batches.

With pytest, the fixtures `aeron_servers`, `aeron_folder` and `aeron_spark` are there as soon as the package is installed
(docs/testing.md). What is here needs no pytest: each fixture is one of these context managers.
"""

from __future__ import annotations

from aeron_spark.testing.differences import assert_equal, difference
from aeron_spark.testing.folder import RecordedFolder, Written
from aeron_spark.testing.ports import free_port
from aeron_spark.testing.servers import Servers
from aeron_spark.testing.session import spark_session
from aeron_spark.testing.waiting import DeadlineError, wait_until

__all__ = [
    "DeadlineError",
    "RecordedFolder",
    "Servers",
    "Written",
    "assert_equal",
    "difference",
    "free_port",
    "spark_session",
    "wait_until",
]
