"""A plan handed over to the tools that start machines: each format says what the plan says, or is refused with the reason."""
