"""The values of YAML documents: keys that hold the version, workflow inputs, scripts in blocks, images, requirements.

PyYAML gives the values with their positions. Only this module imports it, and only a tree with YAML files this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import yaml

from tooling.pins.library import Library
from tooling.pins.patterns import late
from tooling.pins.readers.phrases import VERSION, Span, find_images
from tooling.pins.readers.string_values import find_bound, find_in_value, names_home
from tooling.pins.readers.yaml_values import SHAPE
from tooling.pins.sites import Role

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_REPOSITORY_KEYS = ("repository", "repo", "git", "url", "uses")
_REF_KEYS = frozenset(("ref", "tag", "rev", "branch", "version"))
_CONDA = late(rf"\s*(?:[\w-]+::)?(?P<name>[\w.-]+)=(?P<version>{VERSION})(?:=\S*)?\s*")


def read_documents(text: str, library: Library) -> list[Span]:
    """Every span that holds or names a version.

    Raises:
        ValueError: the text is no YAML.
    """
    try:
        return list(_Documents(text, library).read())
    except yaml.YAMLError as cause:
        raise ValueError(str(cause)) from cause


class _Documents:
    """The values of a YAML text with the keys that lead to them."""

    def __init__(self, text: str, library: Library) -> None:
        self._text = text
        self._library = library

    def read(self) -> Iterator[Span]:
        seen = set[int]()
        documents = yaml.compose_all(self._text, Loader=_LOADER)
        waiting: list[tuple[yaml.Node, tuple[str, ...]]] = [(document, ()) for document in documents]
        while waiting:
            node, keys = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, yaml.MappingNode):
                fields = {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
                for key, value in fields.items():
                    yield from self._field(keys, key, value, fields)
                    waiting.append((value, (*keys[-3:], key)))
            elif isinstance(node, yaml.SequenceNode):
                waiting += [(item, (*keys[-3:], "")) for item in node.value]
            elif isinstance(node, yaml.ScalarNode) and self._library.mark in node.value.lower():
                yield from self._scalar(node)

    def _field(
        self, keys: tuple[str, ...], key: str, value: yaml.Node, fields: Mapping[str, yaml.Node]
    ) -> Iterator[Span]:
        """The version that stands under that key, if the key, its parent or a sibling names the library."""
        library = self._library
        if isinstance(value, yaml.SequenceNode) and library.names_version(key):
            for item in value.value:
                role = Role.PIN if len(value.value) == 1 else Role.USE
                yield from (span.with_role(role) for span in self._bound(item, shape="yaml-list"))
        if not isinstance(value, yaml.ScalarNode):
            return
        name = _text(fields.get("name")) or _text(fields.get("package"))
        package = library.package_of(key)
        if package is not None or library.names_version(key):
            yield from self._bound(value, shape=SHAPE, package=package)
        elif key == "default" and keys and library.names_version(keys[-1]):
            yield from self._bound(value, shape="workflow-input")
        elif key == "value" and name and library.names_version(name):
            yield from self._bound(value, shape=SHAPE)
        elif key in _REF_KEYS and name and library.package_of(name) is not None:
            yield from self._bound(value, shape=SHAPE, package=library.package_of(name))
        elif key in _REF_KEYS and any(names_home(_text(fields.get(item)), library) for item in _REPOSITORY_KEYS):
            yield from self._bound(value, shape="git-ref")

    def _bound(self, node: yaml.Node, *, shape: str, package: str | None = None) -> Iterator[Span]:
        if isinstance(node, yaml.ScalarNode):
            start, raw = self._raw(node)
            yield from (span.moved(start) for span in find_bound(raw, shape=shape, package=package))

    def _scalar(self, node: yaml.ScalarNode) -> Iterator[Span]:
        start, raw = self._raw(node)
        conda = _CONDA.fullmatch(raw)
        if conda is not None and self._library.package_of(conda["name"]) is not None:
            package = self._library.package_of(conda["name"])
            first, last = (start + position for position in conda.span("version"))
            yield Span(start=first, end=last, shape="conda-requirement", package=package)
            return
        is_block = node.style in {"|", ">"}
        yield from (span.moved(start) for span in find_in_value(raw, self._library, is_script=is_block))
        if not is_block:
            yield from (span.moved(start) for span in find_images(raw, self._library))

    def _raw(self, node: yaml.ScalarNode) -> tuple[int, str]:
        """Where the value begins, inside its quotes, and the text as it is written."""
        inset = 1 if node.style in {"'", '"'} else 0
        start, end = node.start_mark.index + inset, node.end_mark.index - inset
        return start, self._text[start:end]


def _text(node: yaml.Node | None) -> str:
    return node.value if isinstance(node, yaml.ScalarNode) else ""
