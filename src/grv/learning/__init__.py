"""Learning from history: fits priors to logs and ledgers, and combines scores."""
