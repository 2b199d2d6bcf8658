"""The outside world: everything that calls a model or runs somebody's code."""
