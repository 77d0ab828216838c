"""Tests of aeron_spark; a package so that tests share tests.kit."""
