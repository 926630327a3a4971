"""What ``diff`` is made of: comparing lines, finding renames, and writing it all down as git does."""
