"""Try Self-Route and measure it: the demo, the command `selfroute`, `evaluate` and an MCP server."""

from selfroute_workbench.evaluation import Evaluation, Question, evaluate, load_questions

__all__ = ["Evaluation", "Question", "evaluate", "load_questions"]
