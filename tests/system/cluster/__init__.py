"""Programs that tests/system/test_cluster.py runs on hosts of its own."""
