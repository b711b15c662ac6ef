"""The tables of the papers: drawn if their data sets or their ablations were run."""
