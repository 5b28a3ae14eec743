"""The study of scar fields: a problem with a known answer, curves over it, one picture."""
