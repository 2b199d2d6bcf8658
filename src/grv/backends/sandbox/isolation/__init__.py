"""The walls around a candidate that the kernel enforces.

jail.py applies all of them, in order, in the child process. This package runs in the zygote, so it
imports the standard library and itself, nothing else of grv.
"""
