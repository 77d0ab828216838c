"""What a query reads: options, bounds, offsets, snapshots of the archive, and how ranges become micro-batches and partitions.

``ranges`` and ``offsets`` are pure; the others read the catalog and find message boundaries.
"""
