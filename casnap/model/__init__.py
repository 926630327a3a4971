"""The nouns of casnap: frozen values, no input or output."""
