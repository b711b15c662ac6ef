"""Asks the questions of an evaluation through real chains and engines, and keeps every reply."""
