"""Tests against stock Aeron, in both directions."""
