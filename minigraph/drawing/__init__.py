"""Pictures of graphs: ``draw``, ``draw_diff``, ``steps``; DOT text, renderers, what is drawn, how it looks, and alt texts.

And of time: ``draw_timeline``, ``draw_curves``, which matplotlib draws when somebody looks.
"""

from .clusters import draw_clusters
from .curves import draw_curves
from .draw import draw, draw_diff, draw_history, steps
from .strides import stride_ruler
from .timeline import chrome_trace, draw_timeline

__all__ = ["chrome_trace", "draw", "draw_clusters", "draw_curves", "draw_diff", "draw_history", "draw_timeline", "steps",
           "stride_ruler"]
