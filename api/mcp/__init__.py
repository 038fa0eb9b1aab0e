"""gpuplan for agents: its services as tools of the Model Context Protocol."""
