"""Requirements lines as pip reads them, each with the place of its first character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooling.pins.requirements import parse_requirements

CASES = [
    ("plain", "torch==2.11.0\n", [("torch==2.11.0", "torch", "2.11.0")]),
    ("normalised name", "Flashinfer_Python==0.6.13", [("Flashinfer_Python==0.6.13", "flashinfer-python", "0.6.13")]),
    ("spaces", "  torch == 2.11.0  \n", [("torch == 2.11.0", "torch", "2.11.0")]),
    ("extras", "nvidia-cutlass-dsl[cu13]==4.5.2", [("nvidia-cutlass-dsl[cu13]==4.5.2", "nvidia-cutlass-dsl", "4.5.2")]),
    ("a marker", 'a==1 ; python_version > "3"', [('a==1 ; python_version > "3"', "a", "1")]),
    ("local version", "a==0.6.13+cu130", [("a==0.6.13+cu130", "a", "0.6.13+cu130")]),
    ("arbitrary equality", "a===0.6.13", [("a===0.6.13", "a", "0.6.13")]),
    ("wildcard", "a==0.6.*", [("a==0.6.*", "a", None)]),
    ("minimum", "a>=0.6.13", [("a>=0.6.13", "a", None)]),
    ("two specifiers", "a==0.6.13,!=0.6.12", [("a==0.6.13,!=0.6.12", "a", None)]),
    ("no version", "a", [("a", "a", None)]),
    ("comments and blanks", "# a==1\n\n   \n  # b\na==1 # why\n", [("a==1", "a", "1")]),
    ("a hash in an address", "a @ https://h/a.whl#sha256=1", [("a @ https://h/a.whl#sha256=1", "a", None)]),
    ("an option line", "-i https://h # x\n-r b.txt", [("-i https://h", None, None), ("-r b.txt", None, None)]),
    ("hashes", "a==1 --hash=sha256:ab", [("a==1", "a", "1")]),
    ("continued", "a==1 \\\n  --hash=sha256:ab \\\r\n --hash=md5:cd\nb==2", [("a==1", "a", "1"), ("b==2", "b", "2")]),
    ("continued at the end", "a==1 \\", [("a==1", "a", "1")]),
    ("a comment is not continued", "# a \\\nb==2", [("b==2", "b", "2")]),
    ("a comment ends a continuation", "a==1 \\\n# x \\\nb==2", [("a==1", "a", "1"), ("b==2", "b", "2")]),
    ("CRLF", "a==1\r\nb==2\r\n", [("a==1", "a", "1"), ("b==2", "b", "2")]),
    ("BOM", "\ufeffa==1\n", [("a==1", "a", "1")]),
    ("BOM before a comment", "\ufeff# a \\\nb==2", [("b==2", "b", "2")]),
    ("BOM before a continuation", "\ufeff\\\r\na==1", [("a==1", "a", "1")]),
    ("no requirement", "./local/dir\n", [("./local/dir", None, None)]),
    ("glued", "a==0.6.13oops!", [("a==0.6.13oops!", None, None)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_lines_are_read_as_pip_reads_them(text: str, expected: list[tuple[str, str | None, str | None]]) -> None:
    lines = parse_requirements(text)
    assert [(line.text, line.name, line.exact_version) for line in lines] == expected
    for line in lines:
        assert text[line.offset :].startswith(line.text.split()[0])


def test_an_option_line_is_one() -> None:
    option, other = parse_requirements("--no-binary :all:\na==1")
    assert (option.is_option, other.is_option) == (True, False)


@given(st.text("a=1.# \\\n\r-;[]\ufeff\t", max_size=40))
def test_any_text_parses_and_every_offset_points_at_its_line(text: str) -> None:
    for line in parse_requirements(text):
        assert line.text
        assert line.text[0] == text[line.offset]
