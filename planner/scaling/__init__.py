"""The largest and best models that a budget trains, by published scaling laws and plans of the planner itself."""
