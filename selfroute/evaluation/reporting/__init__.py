"""What an evaluation shows: tables, sentences, plots and the report, over the results that `finished.py` sorts."""
