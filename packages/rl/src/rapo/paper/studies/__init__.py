"""One study a folder: `plan(preset)` names what is run, `analyse(results)` makes its section."""
