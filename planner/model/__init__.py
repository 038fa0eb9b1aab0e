"""Typed answers of the planner: frozen dataclasses whose fields are those of the wire, in its order."""
