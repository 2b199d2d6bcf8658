"""Searches over logged scores and verdicts: the same `Search`, driven fast."""
