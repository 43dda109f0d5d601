"""A release pipeline for the FlashInfer pin."""

__version__ = "0.1.0"
