"""Hostile programs that must fail and right programs that must pass; `grv doctor` runs them."""
