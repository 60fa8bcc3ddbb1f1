"""Taking a snapshot of a tree that others may be writing to."""
