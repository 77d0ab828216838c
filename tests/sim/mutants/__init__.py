"""Patches that break the product, and the proof that the simulation sees them."""
