"""What each FlashInfer release can do: facts out of its source, the table of them, and what follows for a warm-up."""
