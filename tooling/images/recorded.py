"""Wheel hashes that a bump recorded in release.toml, `[flashinfer.sha256]`: file name to SHA-256. Compares nothing."""

from __future__ import annotations

import tomllib

from tooling.errors import InputError


def parse_recorded_hashes(text: str, *, library: str) -> dict[str, str]:
    """Lower-case hex digits by wheel file name; empty where the table is absent.

    Raises:
        InputError: not TOML, or a table of something else.
    """
    try:
        table = tomllib.loads(text.removeprefix("\ufeff")).get(library, {})
        hashes = table.get("sha256", {})
        return {str(file): value.lower() for file, value in hashes.items()}
    except (tomllib.TOMLDecodeError, AttributeError) as cause:
        raise InputError(
            f"release.toml: [{library}.sha256] is not a table of texts: {cause}", reason="BAD_SETTINGS"
        ) from cause
