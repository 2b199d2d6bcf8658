"""Pages that show a ledger: an API that reads it, and what a browser loads."""
