"""Parts of `grv compare`."""
