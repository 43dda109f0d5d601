"""Whatever strikes at whichever step of a bump, the tree is all old or all new after the next run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tooling.edges.files.applying import find_interrupted
from tooling.errors import EdgeError

from .faults import Fault, Steps, in_child
from .trees import EDITS, Snapshot, break_off, bump, expected, heal_tree, problems_after, snapshot

Fresh = Callable[[], Path]

KILLS = [Fault(kind="SIGKILL"), Fault(kind="SIGKILL", when="after"), Fault(kind="SIGKILL", when="half")]
POLITE = [
    *[Fault(kind="SIGTERM", when=when) for when in ("before", "half")],
    Fault(kind="SIGINT"),
    Fault(kind="SIGHUP"),
]
ERRORS = [
    *[Fault(kind=kind) for kind in ("ENOSPC", "EIO", "EROFS")],
    Fault(kind="EIO", when="after"),
    Fault(kind="ENOSPC", when="half"),
    *[Fault(kind=kind, lasting=True) for kind in ("ENOSPC", "EIO", "EROFS")],
]
HEALING_FAULTS = [
    Fault(kind="SIGKILL"),
    Fault(kind="SIGKILL", when="half"),
    Fault(kind="SIGTERM"),
    Fault(kind="EIO"),
    Fault(kind="EROFS", lasting=True),
]


def steps_of(make: Fresh, work: Callable[[Path], object]) -> list[str]:
    root = make()
    with Steps() as steps:
        work(root)
    return steps.names


def test_a_bump_takes_steps_of_every_kind(fresh_tree: Fresh) -> None:
    names = steps_of(fresh_tree, bump)
    assert len(names) > 40
    assert {"open", "write", "fsync", "replace", "unlink", "mkdir", "fchmod"} <= set(names)
    assert names.count("replace") == len(EDITS) + 1


@pytest.mark.parametrize("fault", KILLS, ids=str)
def test_killed_at_any_step_the_tree_heals_to_all_old_or_all_new(fresh_tree: Fresh, fault: Fault) -> None:
    total = len(steps_of(fresh_tree, bump))
    seen = set()
    for at in range(1, total + 1):
        root = fresh_tree()
        old = snapshot(root)
        with Steps(fault, at=at) as steps:
            code = in_child(lambda root=root: bump(root))
        assert not steps.names, "the steps are the child's"
        assert code in {0, -9}
        seen.add(code)
        state = snapshot(root)
        again = fault.when == "before"  # at the other two the same states come up once more
        assert problems_after(root, old, again=again) == [], f"{fault} at step {at} left {sorted(state)}"
    assert -9 in seen


@pytest.mark.parametrize("fault", POLITE, ids=str)
def test_a_polite_signal_waits_until_the_set_is_whole(fresh_tree: Fresh, fault: Fault) -> None:
    total = len(steps_of(fresh_tree, bump))
    outcomes = set()
    for at in range(1, total + 1):
        root = fresh_tree()
        old = snapshot(root)
        with Steps(fault, at=at):
            code = in_child(lambda root=root: bump(root))
        found = snapshot(root)
        assert find_interrupted(root) is None, f"{fault} at step {at}"
        assert found in (old, expected(old)), f"{fault} at step {at}"
        assert problems_after(root, old, again=False) == [], f"{fault} at step {at}"
        outcomes.add((code != 0, found == old))
    assert (True, False) in outcomes, "struck in the middle, it ended new and then gave in to the signal"


@pytest.mark.parametrize("fault", ERRORS, ids=str)
def test_an_error_at_any_step_says_truly_how_it_ended(fresh_tree: Fresh, fault: Fault) -> None:
    total = len(steps_of(fresh_tree, bump))
    raised = set()
    for at in range(1, total + 1):
        root = fresh_tree()
        old = snapshot(root)
        try:
            with Steps(fault, at=at):
                bump(root)
        except EdgeError as caught:
            error = caught
        else:
            error = None
        assert (error is None) <= (snapshot(root) == expected(old)), f"{fault} at step {at}"
        if error is not None:
            raised.add(error.reason)
            assert untruths(error, root, old) == [], f"{fault} at step {at}: {error.message} ({error.hint})"
        assert problems_after(root, old) == [], f"{fault} at step {at}"
    assert raised >= {"UNWRITABLE", "WRITE_FAILED"}


def untruths(error: EdgeError, root: Path, old: Snapshot) -> list[str]:
    """What an error says about the tree that is not so."""
    sends_to_healing = "check --heal" in error.hint
    if sends_to_healing and find_interrupted(root) is None and "every file is new" not in error.message:
        return ["there is nothing to heal"]
    if not sends_to_healing and find_interrupted(root) is not None:
        return ["there is something to heal"]
    if "every file is new" in error.message:
        return [] if snapshot(root) == expected(old) else ["not every file is new"]
    says_old = "nothing was changed" in error.hint or "every file is as it was" in error.hint
    strays = [name for name in snapshot(root) if "/.bump-" in f"/{name}"]
    if says_old and {name: fact for name, fact in snapshot(root).items() if name not in strays} != old:
        return ["not every file is old"]
    return [] if sends_to_healing else strays


@pytest.mark.parametrize("fault", HEALING_FAULTS, ids=str)
@pytest.mark.parametrize("renamed", [0, 2, len(EDITS)], ids=["no file new", "two files new", "every file new"])
def test_healing_that_is_cut_short_heals_the_next_time(fresh_tree: Fresh, renamed: int, fault: Fault) -> None:
    root = fresh_tree()
    old = snapshot(root)
    break_off(root, renamed=renamed)
    broken_off = root.with_name("broken-off")
    root.rename(broken_off)

    def again() -> Path:
        shutil.rmtree(root, ignore_errors=True)
        return Path(shutil.copytree(broken_off, root, symlinks=True))

    if os.geteuid() == 0:
        os.chown(broken_off / "shared" / "nightly.in", 0, 0)  # copying gives nothing away
        old = {**old, "shared/nightly.in": (*old["shared/nightly.in"][:2], 0)}
    for at in range(1, len(steps_of(again, heal_tree)) + 1):
        again()
        with Steps(fault, at=at):
            _heal_under(fault, root)
        assert problems_after(root, old) == [], f"{fault} at step {at} of healing"
        assert snapshot(root) in (old, expected(old))


def _heal_under(fault: Fault, root: Path) -> None:
    if fault.is_signal:
        in_child(lambda: heal_tree(root))
        return
    with suppress(EdgeError):
        heal_tree(root)


def test_the_harness_sees_what_a_plain_writer_leaves_behind(fresh_tree: Fresh) -> None:
    def plain(root: Path) -> None:
        for edit in EDITS:
            descriptor = os.open(root / edit.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.write(descriptor, edit.after)
            os.close(descriptor)

    bad = 0
    for at in range(1, 2 * len(EDITS) + 1):
        root = fresh_tree()
        old = snapshot(root)
        with Steps(Fault(kind="SIGKILL"), at=at):
            assert in_child(lambda root=root: plain(root)) == -9
        bad += problems_after(root, old) != []
    assert bad == 2 * len(EDITS) - 1
