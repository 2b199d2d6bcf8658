"""The files that a report is made from."""
