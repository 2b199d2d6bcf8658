"""Rounds, seconds, and problems without a pass."""
