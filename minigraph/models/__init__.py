"""Real models to compile, written as plain NumPy so that running them on proxies gives their graph."""
