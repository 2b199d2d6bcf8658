"""What gives candidates their verdicts."""
