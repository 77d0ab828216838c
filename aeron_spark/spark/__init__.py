"""The Spark data source ``aeron``: reads an archive's recordings, publishes rows.

``source.py`` names the parts and is what Spark finds through the top-level module ``pyspark_aeron``. Planning
(``offsets``, ``plan``) is pure; ``reader`` and ``stream_reader`` open the archive's folder, ``writer`` a publication.
"""
