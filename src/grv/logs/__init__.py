"""What was recorded: candidates with their scores and labels, read from files."""
