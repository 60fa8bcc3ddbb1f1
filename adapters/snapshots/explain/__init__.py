"""Finding for every entry of a tree what allows its deletion."""
