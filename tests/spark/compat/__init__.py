"""What the source and the sink do on each pyspark: rows of `docs/compatibility.md`."""
