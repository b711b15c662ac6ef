"""The prompts of a chain: the default ones, and how prompts are checked and filled in."""
