"""What `grv solve` and `grv runs show` print."""
