"""Whether gpuplan is set up to work here: what works, what is missing, and what to do."""
