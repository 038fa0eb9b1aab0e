"""Exports of a plan for tools that start machines. A plan that a tool cannot express is refused with the reason."""
