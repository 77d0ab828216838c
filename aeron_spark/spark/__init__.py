"""The Spark data source ``aeron``: reads an archive's recordings, publishes rows.

Spark finds ``source.py`` through the top-level module ``pyspark_aeron``; it names the parts. ``planning`` parses options and
decides what a query reads, ``reading`` reads it, ``writing`` publishes rows. ``access`` (folder, replay or object store),
``launch`` (driver and archive beside an executor), ``ledger`` (format of the exactly-once ledger) and ``features`` (what the
running pyspark offers) serve all three. ``artifact`` sends the package into a session whose machines lack it.
``listener`` reports how far a query lags, ``lake`` is a table that micro-batches land in. ``planning`` imports neither
``reading`` nor ``writing``, which do not import each other.
"""
