"""The papers' own tables: what only their data sets fill."""
