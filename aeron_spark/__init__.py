"""Aeron-compatible media driver and archive in C, from Python.

Publishing and receiving move whole Arrow batches with the GIL released; `format("aeron")` makes recordings a Spark source
and sink.

The names come from `_api.py` at their first use, so that a command such as `aeron-spark stat` loads neither Arrow nor NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from aeron_spark._native._lib import lib as _lib
from aeron_spark._native.check import string as _string

if TYPE_CHECKING:
    from aeron_spark._api import *  # noqa: F403

__version__ = _string(_lib.as_version_text())


def __getattr__(name: str) -> Any:
    _api = importlib.import_module("aeron_spark._api")
    # With __all__; and what _api imported is an attribute by now, as modules of a package are.
    globals().update({known: getattr(_api, known) for known in _api.__all__}, __all__=_api.__all__)
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
