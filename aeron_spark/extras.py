"""Packages that only some users need: an error that names the command where one is missing."""

from __future__ import annotations


def remedy(package: str, extra: str) -> str:
    """What to say where `package`, which comes with `aeron-spark[extra]`, is not installed."""
    return f"this needs {package}, which is not installed here: pip install 'aeron-spark[{extra}]'"


def missing(error: ModuleNotFoundError, extra: str) -> ModuleNotFoundError:
    """The error to raise for that of an import; an installed package that lacks a part is a matter of its version."""
    package = error.name or ""
    return error if "." in package else ModuleNotFoundError(remedy(package, extra), name=package)
