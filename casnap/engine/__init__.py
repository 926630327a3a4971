"""The verbs: each a function from a context and values to a report."""
