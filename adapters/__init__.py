"""Everything that touches the world: each kind of it through one door."""
