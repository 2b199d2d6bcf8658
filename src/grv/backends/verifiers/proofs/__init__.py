"""Verify proofs: checks of kind "proof"."""
