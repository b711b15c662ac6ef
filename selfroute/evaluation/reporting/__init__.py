"""Shows the results of an evaluation: tables, sentences, plots and the report, over the questions that `compared.py` picks."""
