"""Commands about the theory: shells, star numbers, bounds."""
