"""The live screen of `aeron-spark top`, drawn by rich out of `aeron_spark.live`'s facts.

`views` has the tables, `screen` the state that keys change and the lines of a frame, `terminal` reads keys and writes frames.
"""
