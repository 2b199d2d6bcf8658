"""The score that `grv learn --scorer` trains: features of a candidate, the model, the scorer."""
