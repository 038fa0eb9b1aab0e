"""Work that outlives its request: executed from what the store holds, watched and cancelled through it."""
