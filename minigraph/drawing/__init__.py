"""Pictures of graphs: ``draw``, ``draw_diff``, ``steps``; DOT text, renderers, what is drawn, how it looks, and alt texts.

And of time: ``draw_timeline``, ``draw_curves``, which matplotlib draws when somebody looks.
"""

from .clusters import draw_clusters
from .curves import draw_curves
from .draw import draw, draw_diff, draw_history, steps
from .memory import draw_memory, placing_steps
from .sparsity import draw_24
from .strides import stride_ruler
from .timeline import chrome_trace, draw_timeline

__all__ = ["chrome_trace", "draw", "draw_24", "draw_clusters", "draw_curves", "draw_diff", "draw_history", "draw_memory", "draw_timeline",
           "placing_steps", "steps", "stride_ruler"]
