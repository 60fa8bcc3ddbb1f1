"""Looking at what a snapshot holds, and taking single paths out of it."""
