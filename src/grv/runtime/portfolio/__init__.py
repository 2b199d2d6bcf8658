"""Live searches with several generators."""
