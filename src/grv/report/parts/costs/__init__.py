"""What policies cost."""
