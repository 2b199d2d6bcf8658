"""Verified answers and verdicts as tools of the Model Context Protocol."""
