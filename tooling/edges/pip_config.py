"""pip's own configuration: which indexes this machine installs from, and how they are reached. Starts no pip.

Files, their order and the sections are those of pip's user guide, "Configuration"; `PIP_CONFIG_FILE`, `XDG_CONFIG_DIRS`
and `XDG_CONFIG_HOME` are honoured. What pip reads for `pip install` is read here: `[global]`, `[install]`, `PIP_*`.
"""

from __future__ import annotations

import configparser
import locale
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tooling.edges.environment import load_environment
from tooling.errors import InputError
from tooling.releases.addresses import AddressRole, IndexAddress, parse_address
from tooling.releases.index_options import IndexOptions

_ALIASES = {"default-timeout": "timeout", "pypi-url": "index-url"}
_TRUE = {"y", "yes", "t", "true", "on", "1"}
_FALSE = {"n", "no", "f", "false", "off", "0"}
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
Number = TypeVar("Number", int, float)
DEFAULT_TIMEOUT_S = 15.0
"""pip's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """Where packages come from and how to reach it.

    `main` None means the public index, or none at all with `no_index`. `retries` None means that pip was not told.
    `constraints` are pip's global constraint files. Nothing here may be printed but labels.
    """

    main: IndexAddress | None = None
    extra: tuple[IndexAddress, ...] = ()
    find_links: tuple[IndexAddress, ...] = ()
    no_index: bool = False
    cert: Path | None = None
    client_cert: Path | None = None
    proxy: str | None = field(default=None, repr=False)
    timeout_s: float = DEFAULT_TIMEOUT_S
    retries: int | None = None
    trusted_hosts: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


def load_index_settings(extra_urls: Sequence[str] = (), *, options: IndexOptions | None = None) -> IndexSettings:
    """The settings of pip, and on top of them what a requirements file says and further extra indexes.

    Raises:
        InputError: a configuration file or variable that pip, too, would not accept.
    """
    environ = load_environment()
    return make_settings(load_pip_options(environ), options or IndexOptions(), extra_urls, environ)


def load_pip_options(environ: Mapping[str, str]) -> dict[str, str]:
    """Every setting that `pip install` would see, by its long option's name, raw."""
    merged: dict[tuple[str, str], str] = {}
    for path in config_files(environ):
        merged.update(_read_file(path))
    options: dict[str, str] = {}
    for wanted in ("global", "install"):
        options |= {name: value for (section, name), value in merged.items() if section == wanted and value}
    for variable, value in environ.items():
        if variable.startswith("PIP_") and value:
            options[_option_name(variable[4:])] = value
    return options


def config_files(environ: Mapping[str, str]) -> list[Path]:
    """The configuration files that pip would read, existing or not, the strongest last."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    home = Path(environ.get("HOME") or Path.home())
    files = list(_global_files(environ))
    if not (named and Path(named).exists()):
        files += [home / ".pip" / "pip.conf", _user_folder(environ, home) / "pip.conf"]
    files.append(Path(sys.prefix) / "pip.conf")
    return [*files, Path(named)] if named else files


def make_settings(
    pip: Mapping[str, str], file: IndexOptions, extra_urls: Sequence[str], environ: Mapping[str, str]
) -> IndexSettings:
    """Raw options as settings. The requirements file wins over pip's index, and adds to its lists, as in pip."""
    main = file.index_url or pip.get("index-url")
    extra = [*_words(pip, "extra-index-url"), *file.extra_index_urls, *extra_urls]
    return IndexSettings(
        main=parse_address(_expand(main, environ), AddressRole.MAIN) if main else None,
        extra=tuple(_addresses(extra, AddressRole.EXTRA, environ)),
        find_links=tuple(_addresses([*_words(pip, "find-links"), *file.find_links], AddressRole.FIND_LINKS, environ)),
        no_index=file.no_index or _boolean(pip, "no-index"),
        cert=_path(pip, "cert"),
        client_cert=_path(pip, "client-cert"),
        proxy=pip.get("proxy"),
        timeout_s=_number(pip, "timeout", float) or DEFAULT_TIMEOUT_S,
        retries=_number(pip, "retries", int),
        trusted_hosts=(*_words(pip, "trusted-host"), *file.trusted_hosts),
        constraints=tuple(_words(pip, "constraint")),
    )


def _global_files(environ: Mapping[str, str]) -> Iterator[Path]:
    if sys.platform == "darwin":
        yield Path("/Library/Application Support/pip/pip.conf")
        return
    for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep):
        yield Path(folder) / "pip" / "pip.conf"
    yield Path("/etc/pip.conf")


def _user_folder(environ: Mapping[str, str], home: Path) -> Path:
    if sys.platform == "darwin":
        folder = home / "Library" / "Application Support" / "pip"
        return folder if folder.is_dir() else home / ".config" / "pip"
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip"


def _read_file(path: Path) -> dict[tuple[str, str], str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding=locale.getpreferredencoding(False))
    except (configparser.Error, UnicodeDecodeError) as cause:
        first_line = str(cause).splitlines()[0]
        raise InputError(
            f"{path}: pip's configuration cannot be read: {first_line}",
            hint="mend it until `pip config list` accepts it",
            reason="BAD_PIP_CONFIG",
        ) from cause
    return {
        (section, _option_name(name)): value for section in parser.sections() for name, value in parser.items(section)
    }


def _option_name(name: str) -> str:
    name = name.lower().replace("_", "-").removeprefix("--")
    return _ALIASES.get(name, name)


def _words(options: Mapping[str, str], name: str) -> list[str]:
    return options.get(name, "").split()


def _addresses(urls: Sequence[str], role: AddressRole, environ: Mapping[str, str]) -> Iterator[IndexAddress]:
    """Each address once, in order."""
    seen: set[str] = set()
    for url in urls:
        address = parse_address(_expand(url, environ), role)
        if address.url.rstrip("/") not in seen:
            seen.add(address.url.rstrip("/"))
            yield address


def _expand(text: str, environ: Mapping[str, str]) -> str:
    """`${NAME}` as pip replaces it in requirements files: upper-case names that are set, others stay."""
    return _VARIABLE.sub(lambda match: environ.get(match[1]) or match[0], text)


def _path(options: Mapping[str, str], name: str) -> Path | None:
    return Path(options[name]).expanduser() if name in options else None


def _boolean(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "no").strip().lower()
    if text in _TRUE | _FALSE:
        return text in _TRUE
    raise _bad(name, text, "yes or no")


def _number(options: Mapping[str, str], name: str, kind: Callable[[str], Number]) -> Number | None:
    if name not in options:
        return None
    try:
        return kind(options[name])
    except ValueError:
        raise _bad(name, options[name], "a number") from None


def _bad(name: str, found: str, expected: str) -> InputError:
    return InputError(
        f"pip's setting {name}: found {found!r}, expected {expected}",
        hint="see `pip config debug` for where it stands",
        reason="BAD_PIP_CONFIG",
    )
