"""A thread with a loop of its own for each repository, and the commands that wait for it."""
