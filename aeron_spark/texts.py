"""Texts of other processes (labels, channels, errors) as a terminal can show them: none moves its cursor or begins a line."""

from __future__ import annotations


def escaped(text: str) -> str:
    r"""A message with control characters as \uXXXX."""
    return text if text.isprintable() else "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
