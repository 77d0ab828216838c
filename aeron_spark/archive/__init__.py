"""The Archive from Python: control sessions, servers, and reading an archive's folder directly."""
