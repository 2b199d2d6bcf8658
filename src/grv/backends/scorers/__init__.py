"""What gives candidates the cheap number that ranks them."""
