"""Helpers shared by the system and interop tests and by the benchmarks; nothing here is shipped.

Import the modules one by one: `from tests.kit import stock, processes`. None of them imports the product.
"""
