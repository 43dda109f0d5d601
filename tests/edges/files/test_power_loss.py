"""Whatever of the unflushed a power loss takes, the tree is all old or all new after the next run."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tooling.errors import EdgeError

from .faults import Fault
from .power_loss import Disk, lay, states_after_power_loss
from .trees import EDITS, Snapshot, break_off, bump, expected, heal_tree, problems_after, snapshot

Fresh = Callable[[], Path]


def wrong_states(states: list[Disk], make: Fresh, old: Snapshot) -> list[str]:
    """What is wrong after healing each state; modes and owners are left out, the model does not follow them."""
    root = make()
    wrong = []
    for state in states:
        lay(state, root)
        wrong += problems_after(root, old, contents_only=True, again=False)
    return wrong


def test_power_lost_at_any_step_of_a_bump(fresh_tree: Fresh) -> None:
    root = fresh_tree()
    old = snapshot(root)
    states = states_after_power_loss(root, lambda: bump(root))
    assert len(states) > 100
    assert wrong_states(states, fresh_tree, old) == []


@pytest.mark.parametrize("failed", [1, len(EDITS)], ids=["the first rename", "the last rename"])
def test_power_lost_while_a_failed_bump_is_put_back(fresh_tree: Fresh, failed: int) -> None:
    root = fresh_tree()
    old = snapshot(root)

    def failing() -> None:
        with suppress(EdgeError):
            bump(root)

    states = states_after_power_loss(root, failing, fault=Fault(kind="EIO"), at=1 + failed, of="replace")
    assert wrong_states(states, fresh_tree, old) == []


@pytest.mark.parametrize("renamed", [0, 2], ids=["no file new", "two files new"])
def test_power_lost_at_any_step_of_healing(fresh_tree: Fresh, renamed: int) -> None:
    root = fresh_tree()
    old = snapshot(root)
    break_off(root, renamed=renamed)
    states = states_after_power_loss(root, lambda: heal_tree(root))
    assert wrong_states(states, fresh_tree, old) == []
    assert snapshot(root) == (old if renamed == 0 else expected(old))


def test_the_model_sees_a_file_that_got_its_name_before_it_was_flushed(fresh_tree: Fresh) -> None:
    root = fresh_tree()
    old = snapshot(root)

    def careless() -> None:
        for edit in EDITS[:2]:
            beside = root / f"{edit.path}.new"
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT)
            os.write(descriptor, edit.after)
            os.close(descriptor)
            os.replace(beside, root / edit.path)

    assert wrong_states(states_after_power_loss(root, careless), fresh_tree, old) != []
