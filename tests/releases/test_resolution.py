"""What a resolver printed becomes packages or a conflict, in the wordings of old and new uv."""

from __future__ import annotations

import pytest

from tooling.releases.resolution import Resolution, check_resolution, parse_conflict, parse_resolved

NEW = """\
warning: something else
error: No solution found when resolving dependencies
  cause: Because flashinfer-python>=0.7.4 depends on nvidia-cutlass-dsl>=4.8.0 and you require flashinfer-python==0.7.4, we can conclude that your requirements and nvidia-cutlass-dsl[cu13]==4.5.2 are incompatible.
         And because you require nvidia-cutlass-dsl[cu13]==4.5.2, we can conclude that your requirements are unsatisfiable.
"""
OLD = """\
  \u00d7 No solution found when resolving dependencies:
  ╰─▶ Because only apache-tvm-ffi<=0.1.0b15 is available and x==1.0 depends on
      apache-tvm-ffi>=0.1.0, we can conclude that x==1.0 cannot be used.
      And because you require x==1.0, we can conclude that your requirements are unsatisfiable.

      hint: Pre-releases are available for apache-tvm-ffi in the requested
      range (e.g., 0.1.0b15), but pre-releases weren't enabled (try: `--prerelease=allow`)
"""


@pytest.mark.parametrize(("text", "first", "steps", "hint"), [
    (NEW, "Because flashinfer-python>=0.7.4 depends on nvidia-cutlass-dsl>=4.8.0", 2, ""),
    (OLD, "Because only apache-tvm-ffi<=0.1.0b15 is available and x==1.0 depends on apache-tvm-ffi>=0.1.0,", 2, "Pre-releases are available"),
], ids=["new", "old"])  # fmt: skip
def test_the_innermost_conflict_comes_first(text: str, first: str, steps: int, hint: str) -> None:
    conflict = parse_conflict(text)
    assert conflict is not None
    assert conflict.steps[0].startswith(first)
    assert len(conflict.steps) == steps
    assert conflict.steps[-1].endswith("your requirements are unsatisfiable.")
    assert conflict.hint.startswith(hint)
    (finding,) = check_resolution("r.txt", Resolution(target="linux/arm64, Python 3.12", conflict=conflict))
    assert finding.detail.startswith(f"linux/arm64, Python 3.12: no solution. {first}")
    assert conflict.steps[1] in finding.hint


@pytest.mark.parametrize("text", ["", "error: Failed to fetch: `http://x`\n  cause: dns error"])
def test_another_failure_is_no_conflict(text: str) -> None:
    assert parse_conflict(text) is None


def test_a_conflict_shows_no_credentials() -> None:
    conflict = parse_conflict(
        "No solution found\n  Because a was not found at http://me:hunter2@x.invalid/s and you require a.\n"
    )
    assert conflict is not None
    assert "hunter2" not in repr(conflict)


def test_packages_come_with_the_index_below_them() -> None:
    text = "a-b==1.0   # via c\n    # from https://i.invalid/simple?token=x\nC[x]==2.0 ; python_version > '3'\n\n# a comment\n"
    assert parse_resolved(text) == {"a-b": ("1.0", "https://i.invalid/simple?****"), "c": ("2.0", None)}
