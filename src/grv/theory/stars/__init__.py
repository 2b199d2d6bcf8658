"""Concept classes and their star numbers, which measure how hard a class is to search."""
