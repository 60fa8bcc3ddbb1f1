"""What may be read: facts in, rows out. Pure: a projection says which rows change and never writes them."""
