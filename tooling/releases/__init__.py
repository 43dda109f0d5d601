"""Releases as values: what index pages show, which file is right, and why not the others. Asks nothing itself."""
