"""Benchmarks: paired runs beside a stock peer or a physical floor, one JSON object a line in build/bench.jsonl."""
