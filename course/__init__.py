"""The course machine: `python3 -m course` makes the environment, runs the tests and opens JupyterLab."""
