"""What the CuPy back end is made of; run_cupy.py puts it together."""
