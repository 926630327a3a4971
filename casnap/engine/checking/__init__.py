"""Looking through a whole store, and mending it."""
