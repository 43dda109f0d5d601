"""A small tree with every kind of file that a bump meets, the edits on it, and how it looks. Not a test itself."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tooling.edges.files.applying import Healing, apply_edits, find_interrupted, heal
from tooling.edges.files.journal import lock_tree
from tooling.pins.texts import FileEdit

from .faults import Fault, Steps, in_child

OLD, NEW = "0.6.12", "0.6.13"
EDITS = (
    FileEdit(path="versions.json", before=b'{"v": "0.6.12"}\n', after=b'{"v": "0.6.13"}\n'),
    FileEdit(
        path="requirements/cuda.txt",
        before=b"\xef\xbb\xbf# pins\r\nflashinfer-python==0.6.12\r\nno-end==1",
        after=b"\xef\xbb\xbf# pins\r\nflashinfer-python==0.6.13\r\nno-end==1",
    ),
    FileEdit(path="docker/Dockerfile", before=b"ARG V=0.6.12\n" * 9, after=b"ARG V=0.6.13\n" * 9),
    FileEdit(path="docker/nightly", before=b"ARG V=0.6.12\n", after=b"ARG V=0.6.13\n"),
    FileEdit(path="requirements/made.txt", before=None, after=b"# made by the bump to 0.6.13\n"),
)
"""`docker/nightly` is a link to `shared/nightly.in`, which is executable and belongs to somebody else."""

Snapshot = dict[str, tuple[bytes | str, int, int]]


def make_tree(root: Path) -> Path:
    """The tree, all old; `bystander` is nobody's pin."""
    for folder in ("requirements", "docker", "shared"):
        (root / folder).mkdir(parents=True)
    (root / "docker" / "nightly").symlink_to("../shared/nightly.in")
    (root / "bystander").write_bytes(b"0.6.12")
    for edit in EDITS:
        if edit.before is not None:
            (root / edit.path).write_bytes(edit.before)
    (root / "shared" / "nightly.in").chmod(0o750)
    if os.geteuid() == 0:
        os.chown(root / "shared" / "nightly.in", 12345, 23456)
    return root


def snapshot(root: Path) -> Snapshot:
    """Everything outside `.bump`: what a link points to or a file holds, its mode, its owner."""
    found: Snapshot = {}
    for folder, folders, files in os.walk(root):
        if Path(folder) == root and ".bump" in folders:
            folders.remove(".bump")
        for name in files:
            path = Path(folder, name)
            facts = path.lstat()
            content = os.readlink(path) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(root))] = (content, facts.st_mode, facts.st_uid)
    return found


def expected(old: Snapshot) -> Snapshot:
    """The tree, all new: contents differ and nothing else."""
    new = dict(old)
    for edit in EDITS:
        name = "shared/nightly.in" if edit.path == "docker/nightly" else edit.path
        _, mode, owner = new.get(name, (b"", 0o100644, os.geteuid()))
        new[name] = (edit.after, mode, owner)
    return new


def bump(root: Path) -> None:
    """What the command does with a plan: takes the lock and applies."""
    with lock_tree(root):
        apply_edits(root, EDITS, from_label=OLD, to_label=NEW)


def break_off(root: Path, *, renamed: int) -> Path:
    """Kills a bump when that many files have their new content, before the next one gets it; returns the root.

    The first rename is the record's own; after the last there is no next one to be killed before.
    """
    last = renamed == len(EDITS)
    with Steps(Fault(kind="SIGKILL", when="after" if last else "before"), at=renamed + 2 - last, of="replace"):
        assert in_child(lambda: bump(root)) == -signal.SIGKILL
    return root


def heal_tree(root: Path) -> Healing | None:
    with lock_tree(root):
        return heal(root)


def problems_after(root: Path, old: Snapshot, *, contents_only: bool = False, again: bool = True) -> list[str]:
    """Heals, and says what is wrong then: neither all old nor all new, a stray file, an answer that is not true.

    Then applies once more, which must leave all new; not without `again`. `contents_only` leaves out modes and owners.
    """
    was_interrupted = find_interrupted(root)
    healing = heal_tree(root)
    found, new, problems = snapshot(root), expected(old), []
    if contents_only:
        found, old, new = (_contents(state) for state in (found, old, new))
    if found not in (old, new):
        problems.append(f"neither old nor new: {sorted(k for k in found if (found[k] != old.get(k)))}")
    if healing is not None and (found, healing.version) not in ((old, OLD), (new, NEW)):
        problems.append(f"said {healing.to} {healing.version}, which is not so")
    if (healing is None) != (was_interrupted is None):
        problems.append(f"reported {was_interrupted} and healed {healing}")
    kept = set(os.listdir(root / ".bump")) - {".gitignore", "lock"}
    if kept or (root / ".bump" / ".gitignore").read_bytes().strip() != b"*":
        problems.append(f".bump holds {kept}")
    if again and not problems and found == old:
        bump(root)
        if snapshot(root) != new:
            problems.append("a second run did not make it new")
    return problems


def _contents(state: Snapshot) -> Snapshot:
    return {path: (content, 0, 0) for path, (content, _, _) in state.items()}
