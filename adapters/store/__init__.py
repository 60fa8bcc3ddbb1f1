"""The store: one SQLite file, its log and its tables. apsw is imported here and nowhere else."""
