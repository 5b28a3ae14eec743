"""One study a file: `plan(preset)` names its tasks, `analyse(store)` makes a section of them."""
