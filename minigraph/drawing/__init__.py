"""The parts of ``minigraph.draw``: DOT text and renderers, what is drawn, how it looks, and what it says in words."""
