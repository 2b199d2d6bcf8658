"""Whether the score ranks candidates well."""
