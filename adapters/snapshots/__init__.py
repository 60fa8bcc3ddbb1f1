"""Snapshots: raw bytes in git's object store under one ref, and a manifest that explains every path."""
