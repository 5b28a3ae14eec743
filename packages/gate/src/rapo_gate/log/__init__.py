"""The log: where it lives, who writes it, and how it is read."""
