"""Functions of another package wrapped for a while, and taken back in one way. What a wrapper does is its maker's."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Call = Callable[..., Any]
LAYER = "warmup_layer"
"""The attribute of a wrapper that holds its layer."""
ABSENT = object()


@dataclass(slots=True)
class Layer:
    """A wrapper: what lay there before, ABSENT where a class or a base had the name, and whether it still watches."""

    below: Any
    wrapper: Any = None
    live: bool = True


@contextlib.contextmanager
def wrapped(owner: Any, name: str, around: Callable[[Call], Call]) -> Iterator[None]:
    """`owner.name` is `around(original)` for as long as this lasts; where there is no such name, nothing happens.

    The owner is a module, an instance, or a class with a plain method of that name. Afterwards it is as before, in
    whatever order several wrappers end. If somebody else has put a wrapper on top meanwhile, that one stays, and calls
    pass through ours; the next to end there takes ours along.
    """
    original = getattr(owner, name, None)
    if original is None:
        yield
        return
    layer = Layer(below=vars(owner).get(name, ABSENT))
    watching = around(original)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (watching if layer.live else original)(*args, **kwargs)

    layer.wrapper = call
    setattr(call, LAYER, layer)
    try:
        setattr(owner, name, call)
        yield
    finally:
        layer.live = False
        _take_off(owner, name)


def _take_off(owner: Any, name: str) -> None:
    """Takes off the wrappers that watch no more, from the top down to one that does or is none of ours."""
    top = there = vars(owner).get(name, ABSENT)
    while (layer := _layer_of(top)) and not layer.live:
        top = layer.below
    if top is there:
        return
    if top is ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, top)


def _layer_of(wrapper: Any) -> Layer | None:
    """The wrapper's own layer; one made with `functools.wraps` has a copy of the attribute of what it wraps."""
    layer = getattr(wrapper, LAYER, None)
    return layer if isinstance(layer, Layer) and layer.wrapper is wrapper else None
