"""Fuzz targets of the C parts, and what runs them."""
