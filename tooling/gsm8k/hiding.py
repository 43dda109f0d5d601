"""What is secret in commands, variables and addresses, and texts without it. Nothing here knows of servers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

BLANK = "***"
_HOLE = "-BLANK-"  # stands for BLANK while words are quoted, since a shell would want quotes round the stars

_SECRET = re.compile(
    r"TOKEN(?!S|IZER)|(?<!SEP)KEY|SECRET|PASSW|PASSPHRASE|(?<!BY)(?<!COM)(?<!ASK)PASS$|CREDENTIAL|AUTH(?!OR(?!IZ))|COOKIE"
    r"|_PWD$|DSN(?![A-Z])",
    re.IGNORECASE,
)
_TOKENS = re.compile(r"TOKENS", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[\d.,]*\s*")
_OPTION = re.compile(r"--?[\w-]*(?:api[-_]?key|token|passw(?:or)?d|passphrase|secret|credentials?)", re.IGNORECASE)
_SCHEME = re.compile(r"^(?:basic|bearer|token)\s+", re.IGNORECASE)
_LIST_OPTION = re.compile(r"--?api[-_]?key", re.IGNORECASE)  # an engine takes several of them
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*")
_USER_INFO = re.compile(r"(?<=://)[^/?#\s'\"]+(?=@)")
_PARAMETER = re.compile(
    r"(?<=[?&])([\w.-]*(?:token|key|secret|passw|signature|sig|auth|credential)[\w.-]*=)([^&#\s'\"]+)", re.IGNORECASE
)


def show_words(words: Sequence[str]) -> str:
    """A command line as a shell would take it, with the values of secret options blanked."""
    shown: list[str] = []
    options: list[bool] = _follow_secret_option(words)
    for word, is_value in zip(words, options, strict=True):
        name, equals, value = word.partition("=")
        if is_value:
            shown.append(_HOLE)
        elif equals and _assigns_secret(name, value):
            shown.append(f"{name}={_HOLE}")
        else:
            inner = word
            for secret in find_secrets(_split(word), {}):
                inner = _blank(inner, secret, _HOLE)
            shown.append(_hide_in_address(inner, _HOLE))
    return shlex.join(shown).replace(_HOLE, BLANK)


def show_address(url: str) -> str:
    """The text without users and passwords in its addresses, and without their secret parameters."""
    return _hide_in_address(url, BLANK)


def show_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables with secrets blanked, by their names and by what addresses in them hold."""
    return {
        name: BLANK if _is_secret(name, value) else _hide_in_address(value, BLANK) for name, value in variables.items()
    }


def find_secrets(words: Sequence[str], variables: Mapping[str, str], *keys: str | None) -> tuple[str, ...]:
    """Every text that must not be shown, the longest first: of a command line, of variables, and those keys."""
    found = {key for key in keys if key}
    for word, is_value in zip(words, _follow_secret_option(words), strict=True):
        name, equals, value = word.partition("=")
        if is_value:
            found.add(word)
        elif equals and _assigns_secret(name, value):
            found.add(value)
        elif len(parts := _split(word)) > 1:
            found.update(find_secrets(parts, {}))
        found |= _in_addresses(word)
    for name, value in variables.items():
        # Short values of variables are words that stand in any log.
        if _is_secret(name, value) and len(value) >= 6:
            found |= {value, _SCHEME.sub("", value)}
        found |= _in_addresses(value)
    return tuple(sorted((each for each in found if len(each) > 1), key=lambda each: (-len(each), each)))


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text without those secrets and without those of addresses in it; servers print their arguments."""
    for secret in secrets:
        text = _blank(text, secret, BLANK)
    return _hide_in_address(text, BLANK)


def _is_secret(name: str, value: str) -> bool:
    """By the name; a number of tokens is none."""
    return bool(_SECRET.search(name)) or bool(_TOKENS.search(name) and not _NUMBER.fullmatch(value))


def _assigns_secret(name: str, value: str) -> bool:
    """Whether NAME=value or --option=value holds a secret."""
    return bool(_OPTION.fullmatch(name)) or bool(_ASSIGNMENT.fullmatch(name) and _is_secret(name, value))


def _follow_secret_option(words: Sequence[str]) -> list[bool]:
    """For each word, whether it is the value of a secret option."""
    found: list[bool] = []
    one = more = False
    for word in words:
        is_option = word.startswith("-")
        found.append(one or (more and not is_option))
        more = bool(_LIST_OPTION.fullmatch(word)) or (more and not is_option)
        one = not found[-1] and bool(_OPTION.fullmatch(word))
    return found


def _split(word: str) -> list[str]:
    """The words of a script in one word, as for `sh -c`; empty if it is none."""
    try:
        parts = shlex.split(word)
    except ValueError:
        return []
    return parts if len(parts) > 1 else []


def _in_addresses(text: str) -> set[str]:
    found = {match[2] for match in _PARAMETER.finditer(text)}
    for match in _USER_INFO.finditer(text):
        _, colon, password = match[0].partition(":")
        found |= {match[0], password} if colon and password else {match[0]}
    return found


def _hide_in_address(text: str, blank: str) -> str:
    return _PARAMETER.sub(lambda match: match[1] + blank, _USER_INFO.sub(blank, text))


def _blank(text: str, secret: str, blank: str) -> str:
    """Long secrets wherever they stand, short ones only where they are a whole word."""
    if len(secret) >= 6:
        return text.replace(secret, blank)
    return re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", lambda _: blank, text)
