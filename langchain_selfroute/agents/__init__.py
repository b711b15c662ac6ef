"""The middleware, which routes the questions that an agent is asked."""
