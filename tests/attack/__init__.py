"""Attacks on driver and archive over real sockets, between hosts; see tests/README.md."""
