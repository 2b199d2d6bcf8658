"""Fast paths of replay, one file per family of policies. Each is proved equal to the engine."""
