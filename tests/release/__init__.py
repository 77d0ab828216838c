"""Makes a release, and proves it: `make release`, `make release-elsewhere`."""
