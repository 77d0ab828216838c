"""Reads the recording beside this file with Spark. Change the query, and run it again."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent

# Spark's workers run this Python, and Spark needs no name of this machine that resolves.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
if (HERE / "java").exists():  # this machine had no Java of its own
    os.environ.setdefault("JAVA_HOME", str(HERE / "java"))

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
messages = spark.read.format("aeron").load(str(HERE / "archive"))
messages.selectExpr(
    "from_json(cast(value as string), 'kind string, name string, values map<string, bigint>') as m"
).select("m.*").createOrReplaceTempView("telemetry")
spark.sql("""
    select name as cpu, count(*) as messages, max(values['user']) - min(values['user']) as user_ticks
    from telemetry where kind = 'cpu' group by name order by name
""").show(truncate=False)
spark.stop()
