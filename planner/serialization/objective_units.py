"""In what each objective is counted."""

UNITS = {"cost": "USD", "time": "hours", "carbon": "kg CO2e"}
