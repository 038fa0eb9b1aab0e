"""Spot under a net as one more kind of plan: interruptible machines until only just time is left for a standby."""
