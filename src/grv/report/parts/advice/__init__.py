"""What to use, and what to buy."""
