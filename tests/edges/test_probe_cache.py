"""What was derived is kept by the file's hash and the code that derived it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.capabilities.releases import source, whole_release
from tooling.capabilities import derive as deriving
from tooling.capabilities.derive import Derived, derive
from tooling.edges import probe_cache
from tooling.edges.probe_cache import DERIVING, ProbeCache

ROOM = Path(deriving.__file__).parent
HASH = "0" * 64


def derived(*, with_operations: bool = True) -> Derived:
    members = whole_release()
    return derive(members.keys(), source(members).read, with_operations=with_operations)


@pytest.fixture
def cache(tmp_path: Path) -> ProbeCache:
    return ProbeCache(folder=tmp_path / "cache")


def test_what_was_kept_comes_back_equal(cache: ProbeCache) -> None:
    cache.save(HASH, derived())
    assert cache.load(HASH, with_operations=True) == derived()
    assert cache.load(HASH, with_operations=False) == derived()
    assert cache.load("1" * 64, with_operations=False) is None


def test_less_than_is_asked_for_is_a_miss_and_never_replaces_more(cache: ProbeCache) -> None:
    cache.save(HASH, derived(with_operations=False))
    assert cache.load(HASH, with_operations=True) is None
    assert cache.load(HASH, with_operations=False) == derived(with_operations=False)
    cache.save(HASH, derived())
    cache.save(HASH, derived(with_operations=False))
    assert cache.load(HASH, with_operations=True) == derived()


def test_other_code_is_a_miss(cache: ProbeCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.save(HASH, derived())
    monkeypatch.setattr(probe_cache, "code_digest", lambda: "other")
    assert cache.load(HASH, with_operations=True) is None


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"code": 1}'])
def test_a_damaged_entry_is_a_miss(cache: ProbeCache, data: bytes) -> None:
    cache.save(HASH, derived())
    next(cache.folder.iterdir()).write_bytes(data)
    assert cache.load(HASH, with_operations=True) is None


def test_a_file_without_a_hash_is_not_kept(cache: ProbeCache) -> None:
    cache.save(None, derived())
    assert not cache.folder.exists()
    assert cache.load(None, with_operations=True) is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ProbeCache(folder=tmp_path / "file" / "cache").save(HASH, derived())


def test_every_module_that_derives_is_in_the_digest() -> None:
    waiting, found = ["derive"], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            tree = ast.parse((ROOM / f"{name}.py").read_text())
            modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
            waiting += [module.split(".")[2] for module in modules if module.startswith("tooling.capabilities.")]
    assert found == set(DERIVING)
