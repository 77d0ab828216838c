"""Metrics of drivers, archives and Spark queries for Prometheus, read from shared memory and files: the servers do no work.

`table` names every metric, `driver` and `archive` fill them from directories, `exposition` makes the text, `server` serves it.
"""
