"""Logs of candidates with their scores and labels, and their files."""
