"""Spark's writers, and what their tasks do: rows to messages, pooled publications, and the commit of a batch."""
