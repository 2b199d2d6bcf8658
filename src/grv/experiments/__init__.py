"""Comparisons of policies: on logs, on synthetic populations, and with the best possible cost."""
