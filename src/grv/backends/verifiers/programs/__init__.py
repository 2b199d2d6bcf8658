"""Programs: taken out of a text, run in the sandbox, judged."""
