"""HTML pages: the report of an evaluation, and results question by question."""
