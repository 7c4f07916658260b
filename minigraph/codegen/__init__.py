"""Kernels: one function turns a cluster into lines of C or CUDA, and a few skeletons put loops around them."""
