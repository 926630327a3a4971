"""Setting agents up to run ``casnap hook``, and taking that back: one module an agent, all by the same plan."""
