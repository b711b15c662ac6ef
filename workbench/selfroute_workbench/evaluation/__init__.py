"""Evaluation: does Self-Route pay on your documents?"""

from selfroute_workbench.evaluation.evaluating import evaluate
from selfroute_workbench.evaluation.questions import Question, load_questions
from selfroute_workbench.evaluation.results import Evaluation

__all__ = ["Evaluation", "Question", "evaluate", "load_questions"]
