"""Spark starts Python processes that import pyspark from a zip of sources, which Python compiles anew in each of them.

That is three quarters of the 2 CPU seconds of such a start, and a session has half a dozen. This program puts the compiled code
beside the sources of the pyspark that this Python finds; another Python takes the sources, as before:

    python -m tests.kit.quick_imports
"""

from __future__ import annotations

import compileall
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path
from py_compile import PycInvalidationMode


def main() -> int:
    """Write each zip anew."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    for file in (Path(spec.origin).parent / "python" / "lib").glob("*.zip"):
        with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
            sources = Path(scratch) / "sources"
            shutil.unpack_archive(file, sources)
            # By no time of its source, which a zip rounds.
            unchecked = PycInvalidationMode.UNCHECKED_HASH
            compileall.compile_dir(
                sources, quiet=2, legacy=True, invalidation_mode=unchecked, stripdir=sources, prependdir=file
            )
            Path(shutil.make_archive(f"{scratch}/{file.stem}", "zip", sources)).replace(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
