"""`grv demo`: a small model solves a dozen problems; or a replay of the sample log."""
