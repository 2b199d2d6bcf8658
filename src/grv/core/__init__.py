"""The pure heart: what is asked, what is told, how candidates are ranked, when a search ends."""
