"""The console command `aeron-spark`: arguments and printing only; the work is in the modules above."""
