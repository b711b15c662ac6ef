"""The study of the papers: their data sets, prompts, retrievers and tables, on looks."""
