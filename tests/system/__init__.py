"""Checks of the product as a whole, in real processes."""
