"""Shows the results of an evaluation: tables, sentences, plots and the report."""
