"""Pins as values: where they stand in texts, whether they agree, and how they move. Nothing here touches a file."""
