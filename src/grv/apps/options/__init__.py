"""Option families on the command line and in job files."""
