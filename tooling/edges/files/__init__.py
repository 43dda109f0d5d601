"""Files: reading a tree with its bounds, and changing a set of files all or nothing."""
