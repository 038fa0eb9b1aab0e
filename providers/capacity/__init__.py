"""Questions to the clouds about getting machines: answered within a time limit, or not learned with a reason."""
