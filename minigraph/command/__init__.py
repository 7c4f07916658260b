"""The parts of the command line: options, targets, inputs and tables."""
