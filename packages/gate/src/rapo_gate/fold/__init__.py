"""The fold: from the events of a log to the fields of all regions."""
