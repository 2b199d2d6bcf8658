"""Collecting a log: generating, scoring and verifying a fixed number of candidates."""
