"""The course machine's face to learners; see ``api``."""

from .api import LearnerError, check, hint, predict, progress, refute, solution, use_mine

__all__ = ["LearnerError", "check", "hint", "predict", "progress", "refute", "solution", "use_mine"]
