"""The commands of `rapo gate`, by who uses them."""
