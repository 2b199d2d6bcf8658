"""From results to pages. Numbers first: every figure is drawn from a `Table`."""
