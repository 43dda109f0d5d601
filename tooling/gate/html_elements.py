"""HTML and SVG as values: every text and every attribute is escaped, except what is markup of ours already."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias

from tooling.gate.escaping import clean, cut

MAX_TEXT = 3000
"""No text of a record is shown longer than this: a line of 10 kB is a log, not a sentence."""

_VOID = {"meta", "br", "wbr", "rect", "line", "circle"}


class Html(str):
    """Markup that `element` made; anything else is text."""

    __slots__ = ()


Child: TypeAlias = "Html | str | Iterable[Html | str | None] | None"
Attribute: TypeAlias = "str | float | None"


def element(tag: str, /, *children: Child, **attributes: Attribute) -> Html:
    """`<tag …>children</tag>`. In attributes `_` stands for `-`, at the end for nothing; None is left out."""
    written = "".join(f' {_attribute(key)}="{_value(value)}"' for key, value in attributes.items() if value is not None)
    if tag in _VOID:
        return Html(f"<{tag}{written}>" if tag in {"meta", "br", "wbr"} else f"<{tag}{written}/>")
    return Html(f"<{tag}{written}>{join(*children)}</{tag}>")


def join(*children: Child) -> Html:
    """The children one after the other, texts escaped."""
    return Html("".join(_markup(child) for child in children))


def code(text: str, *, class_: str | None = None) -> Html:
    return element("code", text, class_=class_)


def path_code(path: str) -> Html:
    """The path as code; where it does not fit it breaks behind a slash first."""
    *folders, name = cut(clean(path), MAX_TEXT).split("/")
    return element("code", [join(f"{folder}/", element("wbr")) for folder in folders], name)


def prose(text: str) -> Html:
    """The text with what stands between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one backtick too many: it is no markup
        return join(text)
    return join(*(code(part) if place % 2 else part for place, part in enumerate(parts)))


def badge(text: str, kind: str) -> Html:
    """A word in a coloured pill. The word says it; the colour only helps."""
    return element("span", text, class_=f"badge {kind}")


def link(text: str, address: str) -> Html:
    """A link, if the address is one that a page may lead to; else its text, so that nothing is lost."""
    if not re.fullmatch(r"https://\S+", address):
        return join(text, f" ({address})" if address else "")
    return element("a", text, href=address, rel="noreferrer noopener")


def table(label: str, heads: Sequence[Child], rows: Iterable[Sequence[Child]]) -> Html:
    """A table that scrolls in a region of its own; the first cell of a row is its heading."""
    body = [
        element("tr", element("th", row[0], scope="row"), [element("td", cell) for cell in row[1:]]) for row in rows
    ]
    return scrolling(label, element("tr", [element("th", cell, scope="col") for cell in heads]), body)


def scrolling(label: str, head: Html, body: Iterable[Html]) -> Html:
    """A table of these rows, in a region that scrolls."""
    whole = element("table", element("caption", label), element("thead", head), element("tbody", body))
    return element("div", whole, class_="scroll", role="region", tabindex="0", aria_label=label)


def details(summary: Child, *children: Child, class_: str | None = None) -> Html:
    return element("details", element("summary", summary), *children, class_=class_)


def section(identity: str, heading: str, *children: Child) -> Html:
    """A part of the page that the navigation leads to."""
    head = element("h2", heading, id=f"{identity}-heading")
    return element("section", head, *children, id=identity, aria_labelledby=f"{identity}-heading")


def _markup(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return escape(cut(clean(child), MAX_TEXT))
    return "".join(_markup(one) for one in child)


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    return escape(cut(clean(value), MAX_TEXT)) if isinstance(value, str) else f"{value:g}"
