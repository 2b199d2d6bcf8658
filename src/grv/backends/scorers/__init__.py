"""Backends that score candidates."""
