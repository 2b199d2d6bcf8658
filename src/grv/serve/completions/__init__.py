"""Completions: requests, the answers to them, and streams."""
