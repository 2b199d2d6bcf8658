"""Live searches: the same `Search`, driven over real backends, with everything written down."""
