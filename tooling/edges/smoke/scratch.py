"""The folder of a smoke run: removed whole, however often somebody wishes the run to end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tooling.edges.private_files import private_folder
from tooling.edges.serving.signals import undisturbed


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder that is removed whole: logs and kernels take their time, and nobody comes back for them.

    Raises:
        EdgeError: there is no place for one.
    """
    with ExitStack() as kept:
        folder = kept.enter_context(private_folder())
        try:
            yield folder
        finally:
            with undisturbed():
                kept.close()
