"""What only our own tests use."""
