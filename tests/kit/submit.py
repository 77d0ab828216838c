"""What a shell has for Spark's own programs (spark-submit and the like): the activated environment, and nothing besides."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
ENVIRONMENT = {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "PYSPARK_PYTHON": None,
    "SPARK_HOME": None,
    # The machine may have no name that leads to it.
    "SPARK_LOCAL_IP": "127.0.0.1",
}
