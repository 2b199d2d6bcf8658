"""Trains scores on the verdicts of logs and ledgers."""
