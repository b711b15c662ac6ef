"""Choose the bounds of escalation, and the strategy, by an evaluation's results."""
