"""Figures and tables of a report for publications."""
