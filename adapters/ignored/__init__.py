"""Ignored files: what they are, on what evidence, and which of them are to be kept."""
