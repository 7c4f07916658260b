"""Make the README's picture: ``python course/pictures/make.py``."""

from pathlib import Path

from minigraph import draw_diff, optimize
from minigraph.teach.examples import a4

graph = a4()
draw_diff(graph, optimize(graph).graph, "h = (exp(sin((2 + 3) * x)) + (2 + 3)) * y").save(Path(__file__).with_name("a4.png"))
