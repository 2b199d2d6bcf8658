"""Statements and proofs as checked functions. Only tests and `grv theory` import them."""
