"""What makes candidates."""
