"""Commands that show a ledger to people."""
