"""Verify queries: checks of kind "sql"."""
