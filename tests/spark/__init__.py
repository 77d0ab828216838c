"""Tests of the Spark data source in local mode."""
