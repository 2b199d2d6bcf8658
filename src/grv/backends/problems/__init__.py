"""Problems from files and from published datasets."""
