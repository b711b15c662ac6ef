"""The prompts of a synthesizer: the default ones, and how prompts are checked and filled in."""
