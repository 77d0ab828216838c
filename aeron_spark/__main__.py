"""``python -m aeron_spark`` is the console command ``aeron-spark``."""

import sys

from aeron_spark.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
