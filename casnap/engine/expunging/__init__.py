"""Taking paths out of checkpoints."""
