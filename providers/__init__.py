"""How each cloud, and the user's own rooms, say what they have."""
