"""The shared model and the store: offers, prices, facts, snapshots. Imports no other layer."""
