"""Texts, places in them, edits on them, and the diff that shows the edits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooling.pins.healing import FileState, decide_healing
from tooling.pins.texts import FileEdit, Replacement, SourceText, render_diff, replace_spans

B, A, N = FileState.BEFORE, FileState.AFTER, FileState.NEITHER


@given(st.text("a\n\r\u2028\ufeff", max_size=30), st.integers(0, 30))
def test_lines_count_line_feeds_and_columns_characters(text: str, offset: int) -> None:
    offset = min(offset, len(text))
    source = SourceText("a", text)
    line, column = source.line_and_column(offset)
    assert line == text[:offset].count("\n") + 1
    assert text[:offset].rsplit("\n", maxsplit=1)[-1] == text[offset - column + 1 : offset]
    assert source.raw == text.encode()


def test_spans_are_replaced_in_any_order() -> None:
    wanted = [
        Replacement(start=4, end=5, new="EE"),
        Replacement(start=0, end=1, new=""),
        Replacement(start=1, end=1, new="+"),
    ]
    assert replace_spans("abcdef", wanted) == "+bcdEEf"
    assert replace_spans("abc", []) == "abc"


@pytest.mark.parametrize(
    ("first", "second"), [((0, 2), (1, 3)), ((0, 3), (1, 2)), ((1, 2), (1, 2))], ids=["crossing", "inside", "twice"]
)
def test_overlapping_spans_are_refused(first: tuple[int, int], second: tuple[int, int]) -> None:
    spans = [Replacement(start=start, end=end, new="x") for start, end in (first, second)]
    with pytest.raises(ValueError, match="overlap at character 1"):
        replace_spans("abc", spans)


def test_a_diff_shows_every_edit_and_a_new_file() -> None:
    edits = [
        FileEdit(
            path="a", before=b"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n", after=b"1\r\n2\r\n3\r\nfour\r\n5\r\n6\r\n7\r\n"
        ),
        FileEdit(path="b", before=None, after=b"new\n"),
        FileEdit(path="same", before=b"x", after=b"x"),
        FileEdit(path="emptied", before=b"caf\xe9", after=b""),
    ]
    assert render_diff(edits) == [
        "--- a/a", "+++ b/a", "@@ -2,5 +2,5 @@", " 2", " 3", "-4", "+four", " 5", " 6",
        "--- /dev/null", "+++ b/b", "@@ -0,0 +1 @@", "+new",
        "--- a/emptied", "+++ b/emptied", "@@ -1 +0,0 @@", "-caf\ufffd",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([B, B], "old"),
        ([B, A], "new"),
        ([A, B], "new"),
        ([A, A], "new"),
        ([], "old"),
        ([A, N, B, N], ["1", "3"]),
        ([N], ["0"]),
    ],
    ids=["all old", "last new", "first new", "all new", "no file", "some foreign", "one foreign"],
)
def test_an_interrupted_bump_goes_forward_back_or_is_left(states: list[FileState], expected: object) -> None:
    assert decide_healing({str(number): state for number, state in enumerate(states)}) == expected
