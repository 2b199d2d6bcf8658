"""Problems drawn from laws instead of a log: populations, streams of candidates, trials."""
