"""Verified completions over HTTP, for every OpenAI client."""
