"""Units of the Python package, over the real native code."""
