"""Requirements, companions, and what importing does when they do not match."""

from __future__ import annotations

import pytest

from tests.capabilities.releases import release, source
from tooling.capabilities.distribution import derive_mismatch_policy, derive_packaging_layout, derive_requires

CHECK = """
def _check(found):
    if found != version:
        raise RuntimeError(f"flashinfer-cubin version {found} does not match {version}")
"""
RAISE = f"{CHECK}\ndef _folder():\n    _check(other)\n    return 1\n\nFOLDER = _folder()\n"
WARN = (
    CHECK
    + """
def _folder():
    try:
        _check(other)
    except RuntimeError as error:
        logger.warning("ignored: %s", error)
    return 1

FOLDER = _folder()
"""
)
SILENT = WARN.replace('logger.warning("ignored: %s", error)', "pass")
NEVER_CALLED = f"{CHECK}\ndef _folder():\n    _check(other)\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("x = 1\n", "none"), (RAISE, "raise"), (WARN, "warn"), (SILENT, None), (NEVER_CALLED, None)],
    ids=["no check", "raises at import", "warns", "swallows", "is never called"],
)
def test_the_mismatch_policy_is_what_importing_does(text: str, expected: str | None) -> None:
    fact = derive_mismatch_policy(source(release({"jit/env": text})))
    assert fact.value == expected
    assert bool(fact.reason) is (expected is None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\n", "python"),
        ("def a():\n    import flashinfer_cubin\n", "python+cubin"),
        (
            "def a():\n    import flashinfer_cubin, flashinfer_jit_cache\n    return flashinfer_jit_cache.get_jit_cache_dir()\n",
            "python+cubin+jit-cache",
        ),
        (
            "def a():\n    import flashinfer_jit_cache\n    return flashinfer_jit_cache.get_jit_cache_providers()\n",
            "python+jit-cache-providers",
        ),
        ("def a():\n    import flashinfer_jit_cache\n    return flashinfer_jit_cache.get_shards()\n", None),
        ("def a():\n    import flashinfer_kernels\n", None),
    ],
    ids=["alone", "cubin", "one jit-cache", "providers", "a layout never seen", "a companion never seen"],
)
def test_the_packaging_layout_is_known_or_could_not_tell(text: str, expected: str | None) -> None:
    assert derive_packaging_layout(source(release({"jit/env": text}))).value == expected


def test_requirements_of_extras_are_left_out() -> None:
    text = 'Version: 1\nRequires-Dist: torch\nRequires-Dist:  apache-tvm-ffi <0.2\nRequires-Dist: nvcc; extra == "cu"\n\nbody\n'
    fact = derive_requires(source({"flashinfer_python-1.dist-info/METADATA": text}))
    assert fact.value == ("apache-tvm-ffi <0.2", "torch")


@pytest.mark.parametrize("members", [{}, {"PKG-INFO": "Version: 1\n\n"}], ids=["no metadata", "no requirement"])
def test_missing_requirements_are_could_not_tell(members: dict[str, str]) -> None:
    fact = derive_requires(source(members))
    assert fact.value is None
    assert fact.reason
