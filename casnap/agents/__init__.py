"""What casnap does for coding agents: it takes checkpoints at the events that they tell of."""
