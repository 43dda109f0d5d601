"""Index settings of closed networks: a pip.conf or uv.toml, translated for both installers. Reads no file.

pip's keys are those of its user guide; uv's those of its settings reference. uv does not read pip's file, so one of
them is made from the other. Texts made here are secrets: they may hold passwords.
"""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tooling.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexConfig:
    """Where a build installs from. Addresses may hold credentials and are never shown.

    `left_out` are addresses of this machine's own disk, which a build cannot reach.
    """

    index_url: str | None = field(default=None, repr=False)
    extra_index_urls: tuple[str, ...] = field(default=(), repr=False)
    find_links: tuple[str, ...] = field(default=(), repr=False)
    no_index: bool = False
    trusted_hosts: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def needs_best_match(self) -> bool:
        """Pip takes the best version of all indexes; uv stops at the first index that has the name, unless told."""
        return bool(self.extra_index_urls)


def parse_index_config(text: str, *, path: str) -> IndexConfig:
    """The settings in a pip.conf, or in a uv.toml by its name.

    Raises:
        InputError: not such a file, or one that names no index at all.
    """
    config = _from_uv(text, path) if path.endswith(".toml") else _from_pip(text, path)
    if not (config.index_url or config.extra_index_urls or config.find_links):
        raise InputError(
            f"{path}: names no index that a build can reach",
            hint="expected index-url, extra-index-url or find-links, as in pip.conf, or uv.toml's [[index]]",
            reason="BAD_INDEX_CONFIG",
        )
    return config


def render_pip_config(config: IndexConfig) -> str:
    """A pip.conf."""
    rows = {
        "index-url": config.index_url or "",
        "extra-index-url": _indented(config.extra_index_urls),
        "find-links": _indented(config.find_links),
        "no-index": "true" if config.no_index else "",
        "trusted-host": _indented(config.trusted_hosts),
    }
    return "\n".join(["[global]", *(f"{name} = {value}" for name, value in rows.items() if value)]) + "\n"


def render_uv_config(config: IndexConfig) -> str:
    """A uv.toml with the same meaning."""
    rows: list[str] = []
    if config.index_url:
        rows.append(f"index-url = {_quoted(config.index_url)}")
    if config.extra_index_urls:
        rows += [f"extra-index-url = {_list(config.extra_index_urls)}", 'index-strategy = "unsafe-best-match"']
    if config.find_links:
        rows.append(f"find-links = {_list(config.find_links)}")
    if config.no_index:
        rows.append("no-index = true")
    if config.trusted_hosts:
        rows.append(f"allow-insecure-host = {_list(config.trusted_hosts)}")
    return "\n".join(rows) + "\n"


def _from_pip(text: str, path: str) -> IndexConfig:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text.removeprefix("\ufeff"))
    except configparser.Error as cause:
        raise InputError(f"{path}: not a pip.conf: {str(cause).splitlines()[0]}", reason="BAD_INDEX_CONFIG") from cause
    options: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            options |= {name.replace("_", "-"): value or "" for name, value in parser.items(section)}
    return _config(options, path)


def _from_uv(text: str, path: str) -> IndexConfig:
    try:
        data = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as cause:
        raise InputError(f"{path}: not TOML: {cause}", reason="BAD_INDEX_CONFIG") from cause
    data = {**data, **data.get("pip", {})} if isinstance(data.get("pip", {}), dict) else data
    indexes = [item for item in data.get("index", []) if isinstance(item, dict) and isinstance(item.get("url"), str)]
    default = [item["url"] for item in indexes if item.get("default") is True]
    listed = {
        "index-url": data.get("index-url") or next(iter(default), ""),
        "extra-index-url": [
            *data.get("extra-index-url", []),
            *(item["url"] for item in indexes if not item.get("default")),
        ],
        "find-links": data.get("find-links", []),
        "no-index": "true" if data.get("no-index") is True else "",
        "trusted-host": data.get("allow-insecure-host", []),
    }
    return _config(
        {name: "\n".join(value) if isinstance(value, list) else str(value) for name, value in listed.items()}, path
    )


def _config(options: Mapping[str, str], path: str) -> IndexConfig:
    words = {
        name: options.get(name, "").split() for name in ("index-url", "extra-index-url", "find-links", "trusted-host")
    }
    if len(words["index-url"]) > 1:
        raise InputError(
            f"{path}: index-url names {len(words['index-url'])} addresses, expected one", reason="BAD_INDEX_CONFIG"
        )
    lists = {name: [item for item in found if _is_remote(item)] for name, found in words.items()}
    local = [
        item for name in ("index-url", "extra-index-url", "find-links") for item in words[name] if not _is_remote(item)
    ]
    return IndexConfig(
        index_url=next(iter(lists["index-url"]), None),
        extra_index_urls=tuple(lists["extra-index-url"]),
        find_links=tuple(lists["find-links"]),
        no_index=options.get("no-index", "").strip().lower() in {"1", "true", "yes", "on"},
        trusted_hosts=tuple(words["trusted-host"]),
        left_out=tuple(local),
    )


def _is_remote(address: str) -> bool:
    return urlsplit(address).scheme in {"http", "https"}


def _indented(values: Iterable[str]) -> str:
    return "".join(f"\n    {value}" for value in values)


def _list(values: Iterable[str]) -> str:
    return f"[{', '.join(_quoted(value) for value in values)}]"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
