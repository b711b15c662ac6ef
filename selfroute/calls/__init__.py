"""One question: its options, what a framework does for it, and the loops that drive it."""
