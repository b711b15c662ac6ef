"""Writes questions about a user's own documents with a model, and checks them."""
