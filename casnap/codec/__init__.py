"""The bytes of a store: pure functions from bytes to bytes (docs/format gives every table)."""
