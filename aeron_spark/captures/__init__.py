"""Captures of packets become recordings of an archive's folder: `import_capture`, or `aeron-spark archive import`."""

from __future__ import annotations

from aeron_spark.captures.importing import CAPTURED, Gap, Imported, Report, import_capture

__all__ = ["CAPTURED", "Gap", "Imported", "Report", "import_capture"]
