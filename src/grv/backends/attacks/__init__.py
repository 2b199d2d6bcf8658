"""The built-in attacks, and right programs: what `grv doctor` tries on this machine."""
