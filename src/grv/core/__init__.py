"""The pure core: actions and events, the ranking of candidates, the state machine of a search."""
