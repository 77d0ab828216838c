"""Scenarios of Spec: 08 §19 over raw control messages, against the archive that PEER names."""
