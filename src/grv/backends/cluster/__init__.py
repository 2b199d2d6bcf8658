"""Verification on a Ray cluster: the connection, the pool on each node, and the engine."""
