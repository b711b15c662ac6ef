"""The documents as tools with which agents look for themselves."""
