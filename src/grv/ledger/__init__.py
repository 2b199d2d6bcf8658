"""What was paid for, for ever. Append-only; what a search knows is rebuilt from its entries."""
