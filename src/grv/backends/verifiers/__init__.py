"""Backends that verify candidates."""
