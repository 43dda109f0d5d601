"""The commands, one module each: load, decide, say, apply."""
