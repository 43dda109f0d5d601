"""Layers merged as a container sees them: whiteouts, opaque folders, links, rights."""

from __future__ import annotations

import pytest

from tooling.images.filesystem import Entry, Kind, Layer, merge_layers


def entry(
    path: str, kind: Kind = "file", *, mode: int = 0o644, uid: int = 0, gid: int = 0, link: str = "", text: str = ""
) -> Entry:
    return Entry(path=path, kind=kind, mode=mode, uid=uid, gid=gid, link=link, content=text.encode() if text else None)


def layer(*entries: Entry, removed: tuple[str, ...] = (), emptied: tuple[str, ...] = ()) -> Layer:
    return Layer(entries=entries, removed=frozenset(removed), emptied=frozenset(emptied))


LOWER = layer(entry("a", "folder"), entry("a/b", "folder"), entry("a/b/c"), entry("a/d"), entry("ab"))


@pytest.mark.parametrize(
    ("upper", "left"),
    [
        (layer(), {"a", "a/b", "a/b/c", "a/d", "ab"}),
        (layer(removed=("a/b",)), {"a", "a/d", "ab"}),
        (layer(removed=("a",)), {"ab"}),
        (layer(emptied=("a",)), {"a", "ab"}),
        (layer(entry("a/n"), emptied=("a",)), {"a", "a/n", "ab"}),
        (layer(entry("a/d"), removed=("a/d",)), {"a", "a/b", "a/b/c", "a/d", "ab"}),
        (layer(emptied=("",)), set()),
    ],
    ids=["nothing", "folder", "tree", "opaque", "opaque and new", "removed and new", "root"],
)
def test_upper_layers_hide_what_they_remove(upper: Layer, left: set[str]) -> None:
    assert set(merge_layers([LOWER, upper]).entries) == left


def test_the_upper_file_wins() -> None:
    system = merge_layers([layer(entry("f", text="old")), layer(entry("f", text="new"))])
    assert system.text("/f") == "new"


def test_links_are_followed_inside_the_image() -> None:
    system = merge_layers([
        layer(
            entry("usr", "folder"), entry("usr/local", "folder"), entry("usr/local/cuda-13.0", "folder"),
            entry("usr/local/cuda-13.0/nvcc", text="x"), entry("usr/local/cuda", "link", link="cuda-13.0"),
            entry("abs", "link", link="/usr/local/cuda/nvcc"), entry("up", "link", link="usr/../abs"),
            entry("loop", "link", link="loop"), entry("out", "link", link="../../../abs"),
        )
    ])  # fmt: skip
    assert system.text("/usr/local/cuda/nvcc") == "x"
    assert system.text("abs") == system.text("/up") == system.text("/out") == "x"
    assert system.resolve("/loop") is None
    assert system.resolve("/usr/none/x") is None
    assert (found := system.resolve("/")) is not None
    assert found.kind == "folder"


@pytest.mark.parametrize(
    ("path", "uid", "gids", "expected"),
    [
        ("/home/me/.cache", 1000, (), True),
        ("/home/me/.cache/deep/er", 1000, (), True),
        ("/home/me/.cache", 1001, (), False),
        ("/shared", 1001, (50,), True),
        ("/shared", 1001, (51,), False),
        ("/tmp/x", 1001, (), True),
        ("/none", 1001, (), False),
        ("/none", 0, (), True),
        ("/file", 0, (), False),
    ],
)
def test_who_may_write_where(path: str, uid: int, gids: tuple[int, ...], expected: bool) -> None:
    system = merge_layers([
        layer(
            entry("home", "folder", mode=0o755), entry("home/me", "folder", mode=0o755, uid=1000),
            entry("home/me/.cache", "folder", mode=0o700, uid=1000), entry("shared", "folder", mode=0o775, gid=50),
            entry("tmp", "folder", mode=0o777), entry("file"),
        )
    ])  # fmt: skip
    assert system.can_write(path, uid, gids) is expected
