"""The ledger: an append-only record of everything paid for. Searches resume from its entries."""
