"""The only room that writes to a disk or forces data out to it."""
