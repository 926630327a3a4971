"""A workspace as it is on disk: looking at it and reading it. Nothing here writes."""
