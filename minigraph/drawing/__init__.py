"""Pictures of graphs: ``draw``, ``draw_diff``, ``steps``; DOT text, renderers, what is drawn, how it looks, and alt texts."""

from .draw import draw, draw_diff, draw_history, steps

__all__ = ["draw", "draw_diff", "draw_history", "steps"]
