"""The use cases: what a person asks for, composed of looks and commands. Nothing here changes the world."""
