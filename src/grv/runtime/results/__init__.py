"""What live runs leave behind: solutions, the file of answers, the ledger as a log."""
