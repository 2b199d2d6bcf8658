"""Live searches: drives `Search` with real backends and records everything in a ledger."""
