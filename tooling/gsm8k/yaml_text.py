"""YAML text to a mapping. Its keys and values are read elsewhere."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import yaml

from tooling.errors import InputError


def parse_yaml(text: str, *, path: str) -> Mapping[str, object]:
    """The mapping in a YAML text. Raises InputError if it is none."""
    try:
        values = yaml.load(text, Loader=_Loader)  # noqa: S506  # a SafeLoader
    except (yaml.YAMLError, RecursionError, TypeError) as cause:
        raise InputError(f"{path}: is not YAML: {' '.join(str(cause).split())}", reason="UNPARSABLE") from cause
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise InputError(f"{path}: found {type(values).__name__}, expected names with values", reason="BAD_CONFIG")
    return values


class _Loader(yaml.SafeLoader):
    """YAML in which a key that stands twice is an error, not a silent choice of the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} stands twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep=deep)
