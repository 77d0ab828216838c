"""One suite over each pair of ways to do the same."""
