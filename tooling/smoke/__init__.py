"""The smoke stage: which scenarios run, what was observed, and whether it is what the table says. Nothing here runs."""
