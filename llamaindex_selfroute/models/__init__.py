"""LlamaIndex's models: how they are called, what they say of themselves, and what they reply."""
