"""Breakages of the product that the tests must notice."""
