"""Answers in mathematics, compared with a reference."""
