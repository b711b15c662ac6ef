"""Evaluation: does Self-Route reproduce the paper's tables, and does it pay on your documents?"""

from selfroute.evaluation.evaluating import evaluate
from selfroute.evaluation.grades import load_grades
from selfroute.evaluation.questions import Question, load_questions
from selfroute.evaluation.results import Evaluation

__all__ = ["Evaluation", "Question", "evaluate", "load_grades", "load_questions"]
