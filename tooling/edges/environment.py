"""The process's environment variables. Secrets read here are never printed or recorded."""

from __future__ import annotations

import os


def load_environment() -> dict[str, str]:
    """All variables, as they are now."""
    return dict(os.environ)
