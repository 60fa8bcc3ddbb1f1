"""Everything that talks to git: the one door to its process, the readers of what it says and keeps."""
