"""Making a worktree what a snapshot holds."""
