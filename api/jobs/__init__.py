"""Work that outlives its request: its state is in the store, through which it is executed, observed and cancelled."""
