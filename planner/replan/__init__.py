"""A job that is under way, planned anew: go on as it is, or change to other machines, whichever costs least from now."""
