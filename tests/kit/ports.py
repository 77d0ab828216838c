"""The free UDP ports of `aeron_spark.testing`, and programs on such ports."""

from __future__ import annotations

import re

from aeron_spark.testing.ports import bind_free, free_port, free_range

__all__ = ["bind_free", "free_port", "free_range", "own"]


def own(text: str) -> str:
    """A program's text with free ports instead of its own, so that several can run at the same time."""
    named = re.compile(r"\b(localhost|127\.0\.0\.1):([1-9]\d{3,4})\b")
    instead = {port: free_port() for _, port in sorted(set(named.findall(text)))}
    return named.sub(lambda found: f"{found[1]}:{instead[found[2]]}", text)
