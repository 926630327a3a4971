"""``import``: the histories of other systems as checkpoints, one reader a system."""
