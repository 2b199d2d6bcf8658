"""Mutated inputs for every command: what they begin with, how they are spoilt, how they are run."""
