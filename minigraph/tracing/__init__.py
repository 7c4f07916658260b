"""What ``minigraph.trace`` is made of: a proxy, a recording, and tables of NumPy functions."""
