"""Plugins that run inside an agent: shipped with casnap, copied to where the agent finds them."""
