"""What a shell sets for Spark's own programs (spark-submit and the like), so that they run this Python's Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
ENVIRONMENT = {
    "SPARK_HOME": str(SPARK_HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "PYSPARK_PYTHON": sys.executable,
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
}
