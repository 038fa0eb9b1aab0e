"""Many jobs over shared machines, quotas and one budget: which configuration each gets, and when it starts."""
