"""Drives the same `Search` as live runs, over logged scores and verdicts."""
