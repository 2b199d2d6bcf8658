"""Review by people: a queue of candidates, leases on them, and verdicts in the ledger."""
