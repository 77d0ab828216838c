"""The simulation; README.md tells how to use it."""
