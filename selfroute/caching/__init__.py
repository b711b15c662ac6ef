"""Hit the prompt caches of providers, where a document that is read again costs a fraction."""
