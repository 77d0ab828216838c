"""The demonstration of `make run`: telemetry of this machine, published, recorded, streamed and replayed."""
