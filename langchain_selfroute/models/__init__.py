"""LangChain's models: what they say of themselves, what they reply, and how they are asked for a report."""
