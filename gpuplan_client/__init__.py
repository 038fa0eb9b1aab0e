"""A client of a gpuplan service over HTTP, on httpx alone: importable where neither planner nor service is installed."""
