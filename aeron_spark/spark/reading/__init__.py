"""Spark's readers, and what their tasks do: ranges of recordings to Arrow batches, and these to the rows of a schema."""
