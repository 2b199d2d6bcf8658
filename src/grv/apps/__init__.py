"""The doors. Thin: parse, call, print."""
