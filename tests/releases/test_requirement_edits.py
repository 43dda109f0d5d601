"""Lines of requirements files that are added, taken out and put in again; every other byte stays."""

from __future__ import annotations

import pytest

from tests.releases.pages import wheels
from tooling.pins.requirements import parse_requirements
from tooling.pins.texts import SourceText
from tooling.releases.companions import find_contradictions, move_companions, needs_of, parse_requires
from tooling.releases.index_options import read_index_options
from tooling.releases.requirement_edits import add_index, drop_line, restore_line
from tooling.releases.targets import Target

URL = "https://own.invalid/whl/"
OPTION = f"--extra-index-url {URL}"

ADDED = {
    "behind the comments at the top": ("# kernels\n\na==1\n", f"# kernels\n\n{OPTION}\na==1\n"),
    "before other options": ("-f /wheels\na==1\n", f"{OPTION}\n-f /wheels\na==1\n"),
    "CRLF": ("# k\r\na==1\r\n", f"# k\r\n{OPTION}\r\na==1\r\n"),
    "behind a BOM": ("\ufeffa==1\n", f"\ufeff{OPTION}\na==1\n"),
    "an empty file": ("", f"{OPTION}\n"),
    "a comment that names it": (f"# {OPTION}\na==1\n", f"# {OPTION}\n{OPTION}\na==1\n"),
}


@pytest.mark.parametrize(("before", "after"), ADDED.values(), ids=ADDED)
def test_an_index_is_added_before_the_first_requirement(before: str, after: str) -> None:
    assert add_index(before, URL) == after
    assert add_index(after, URL) == after


@pytest.mark.parametrize(
    "line",
    [f"--extra-index-url={URL}", "--extra-index-url   https://me:pw@OWN.invalid/whl", f"-i {URL}",
     f"--index-url '{URL}'", f"--find-links {URL}"],
)  # fmt: skip
def test_an_index_that_is_there_in_any_spelling_is_not_added_again(line: str) -> None:
    assert add_index(f"{line}\na==1\n", URL) == f"{line}\na==1\n"


DROPPED = {
    "in the middle": ("a==1\nb-x==2  # why\nc==3\n", "a==1\nc==3\n", "b-x=={version}  # why", "a"),
    "first": ("B_x==2\nc==3\n", "c==3\n", "B_x=={version}", ""),
    "last, no final newline": ("a==1\nb.x==2", "a==1\n", "b.x=={version}", "a"),
    "CRLF": ("a==1\r\nb-x==2\r\nc==3\r\n", "a==1\r\nc==3\r\n", "b-x=={version}", "a"),
    "continued": ("a==1\nb-x==2 \\\n  ; python_version > '3'\nc==3\n", "a==1\nc==3\n",
                  "b-x=={version} \\\n  ; python_version > '3'", "a"),
    "behind a BOM": ("\ufeffb-x==2\nc==3\n", "\ufeffc==3\n", "b-x=={version}", ""),
    "with an extra": ("a==1\nb-x[cu13]==2\n", "a==1\n", "b-x[cu13]=={version}", "a"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "line", "follows"), DROPPED.values(), ids=DROPPED)
def test_a_line_is_taken_out_and_put_in_again(before: str, after: str, line: str, follows: str) -> None:
    text, pin = drop_line(before, "b-x", path="r.txt", at="9")
    assert pin is not None
    assert (text, pin.line, pin.after) == (after, line, follows)
    again = restore_line(text, pin, "2")
    assert sorted(again.removeprefix("\ufeff").splitlines()) == sorted(before.removeprefix("\ufeff").splitlines())
    assert not follows or not before.endswith("\n") or again == before
    assert restore_line(again, pin, "3") == again


def test_what_is_not_there_cannot_be_taken_out() -> None:
    assert drop_line("a==1\n# b-x==2\n", "b-x", path="r.txt", at="9") == ("a==1\n# b-x==2\n", None)


def test_options_are_read_in_all_their_spellings() -> None:
    text = '-i https://i.invalid\n--extra-index-url=https://a.invalid --trusted-host a.invalid\n-f x/y\n--no-index\n--pre\n--extra-index-url "unclosed\n'
    options = read_index_options(parse_requirements(text))
    assert options.index_url == "https://i.invalid"
    assert options.extra_index_urls == ("https://a.invalid", '"unclosed')
    assert (options.find_links, options.trusted_hosts, options.no_index) == (("x/y",), ("a.invalid",), True)


METADATA = """\
Metadata-Version: 2.4
Name: flashinfer-python
Version: 0.7.4
Requires-Dist: apache-tvm-ffi<0.2,>=0.1.11
Requires-Dist: apache-tvm-ffi!=0.1.12
Requires-Dist: nvidia-cutlass-dsl>=4.8.0
Requires-Dist: only-arm>=2; platform_machine == "aarch64"
Requires-Dist: only-windows>=2; sys_platform == "win32"
Requires-Dist: cupy>=13; extra == "cupy"
Requires-Dist: not a requirement !!
Requires-Dist: numpy

Requires-Dist: in-the-description>=9
"""
TARGETS = [Target(platform="linux/amd64"), Target(platform="linux/arm64")]


def needs(*extras: str) -> dict[str, str]:
    return {name: str(spec) for name, spec in needs_of(parse_requires(METADATA), TARGETS, extras).items()}


def test_needs_are_those_of_some_machine_and_the_chosen_extras() -> None:
    assert needs() == {
        "apache-tvm-ffi": "!=0.1.12,<0.2,>=0.1.11", "nvidia-cutlass-dsl": ">=4.8.0", "only-arm": ">=2", "numpy": "",
    }  # fmt: skip
    assert needs("cupy")["cupy"] == ">=13"


PAGES = {
    "apache-tvm-ffi": [wheels("apache-tvm-ffi", "0.1.9", "0.1.11rc1", "0.1.12", "0.1.13", "0.1.14", "0.2.0")],
    "nvidia-cutlass-dsl": [wheels("nvidia-cutlass-dsl", "4.8.0rc1")],
    "only-arm": [wheels("only-arm", "1.0")],
}
LINES = {
    "an exact pin": ("apache-tvm-ffi==0.1.9", "0.1.13", "apache-tvm-ffi==0.1.13"),
    "a pin that is allowed": ("apache-tvm-ffi==0.1.14", None, None),
    "a pin of a known bad one": ("apache_tvm_ffi == 0.1.12 # keep", "0.1.13", "apache_tvm_ffi ==0.1.13 # keep"),
    "extras, marker and hash stay": (
        "apache-tvm-ffi[cu]==0.1.9 ; python_version>='3.10'", "0.1.13", "apache-tvm-ffi[cu]==0.1.13 ; python_version>='3.10'",
    ),
    "a cap": ("apache-tvm-ffi>=0.1,<0.1.10", "0.1.13", "apache-tvm-ffi!=0.1.12,<0.2,>=0.1.11"),
    "a range with room": ("apache-tvm-ffi>=0.1", None, None),
    "parentheses": ("apache-tvm-ffi (==0.1.9)", "0.1.13", "apache-tvm-ffi (==0.1.13)"),
    "no specifier": ("apache-tvm-ffi", None, None),
    "a URL": ("apache-tvm-ffi @ https://x.invalid/a.whl", None, None),
    "what is published is too low": ("nvidia-cutlass-dsl==4.5.2", "none", "nvidia-cutlass-dsl==4.5.2"),
    "nothing would do": ("only-arm==1.0", "none", "only-arm==1.0"),
    "a package that it does not need": ("torch==2.11.0", None, None),
}  # fmt: skip


@pytest.mark.parametrize(("line", "lowest", "after"), LINES.values(), ids=LINES)
def test_which_lines_contradict_and_what_becomes_of_them(line: str, lowest: str | None, after: str | None) -> None:
    source = SourceText("r.txt", f"# top\n{line}\n")
    lines = parse_requirements(source.text)
    needed = needs_of(parse_requires(METADATA), TARGETS)
    found = find_contradictions(source, lines, needed, PAGES, TARGETS)
    if lowest is None:
        assert found == []
        return
    (item,) = found
    assert (item.line, str(item.lowest).lower()) == (2, lowest)
    movable = [item] if item.lowest is not None else []
    assert move_companions(source.text, movable) == f"# top\n{after}\n"
