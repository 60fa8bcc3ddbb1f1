"""A worktree's registration as part of a snapshot: kept, compared and put back."""
