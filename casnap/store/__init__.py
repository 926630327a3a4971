"""Content-addressed truth: packs, operation log, catalog. Knows no files of a workspace."""
