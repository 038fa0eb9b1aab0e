"""A running job planned anew: continue, or change to other machines, whichever costs least from now on."""
