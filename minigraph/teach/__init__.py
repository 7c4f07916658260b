"""The course machine's face to learners; see ``api``."""

from .api import LearnerError, break_rule, check, hint, predict, progress, refute, refute_benchmark, refute_trace, solution, use_mine

__all__ = ["LearnerError", "break_rule", "check", "hint", "predict", "progress", "refute", "refute_benchmark", "refute_trace", "solution",
           "use_mine"]
