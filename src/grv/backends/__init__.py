"""Everything that calls a model or runs untrusted code."""
