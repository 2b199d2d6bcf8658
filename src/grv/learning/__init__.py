"""What history says: priors fitted to logs and ledgers, and scores combined."""
