"""Archives of `docker save` in both layouts, compressed or not, and broken ones; overlay folders as they lie on a disk."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tooling.edges.image_layers import overlay_folders, read_archive, read_overlay_folder
from tooling.errors import EdgeError
from tooling.images.filesystem import merge_layers


def _tar(files: dict[str, bytes | str]) -> bytes:
    """A tar; a text value is a symbolic link's target, a name that ends with `/` is a folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name.rstrip("/"))
            if name.endswith("/"):
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(member)
            elif isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size, member.uid, member.mode = len(content), 1000, 0o640
                archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


LOWER = _tar({"etc/": b"", "etc/passwd": b"root:x:0:0::/:/bin/sh\n", "etc/gone": b"x", "opt/": b"", "opt/old": b"x"})
UPPER = _tar({"etc/.wh.gone": b"", "opt/.wh..wh..opq": b"", "opt/new": b"y", "here": "etc/passwd"})


def _docker_layout(*layers: bytes) -> bytes:
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = json.dumps([{"Config": "c.json", "Layers": names}]).encode()
    return _tar({**dict(zip(names, layers, strict=True)), "c.json": b"{}", "manifest.json": manifest})


def _oci_layout(*layers: bytes) -> bytes:
    names = [f"blobs/sha256/{number}" for number in range(len(layers))]
    manifest = json.dumps([{"Config": "blobs/sha256/c", "Layers": names}]).encode()
    packed = [gzip.compress(layer) for layer in layers]
    blobs = dict(zip(names, packed, strict=True))
    return _tar({"oci-layout": b"{}", "manifest.json": manifest, "blobs/sha256/c": b"{}", **blobs})


def _shared_layers() -> bytes:
    """Docker's layout writes a layer that occurs twice once, and links to it."""
    manifest = json.dumps([{"Layers": ["0/layer.tar", "1/layer.tar"]}]).encode()
    return _tar({"0/layer.tar": LOWER, "1/layer.tar": "../0/layer.tar", "manifest.json": manifest})


def _chunks(data: bytes, size: int = 1000) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.mark.parametrize("make", [_docker_layout, _oci_layout])
@pytest.mark.parametrize("size", [7, 1000, 1 << 20])
def test_layers_are_read_out_of_either_layout_however_it_arrives(make, size: int) -> None:
    layers = read_archive(_chunks(make(LOWER, UPPER), size))
    system = merge_layers(layers)
    assert set(system.entries) == {"etc", "etc/passwd", "opt", "opt/new", "here"}
    assert system.text("/here") == "root:x:0:0::/:/bin/sh\n"
    assert (system.entries["opt/new"].uid, system.entries["opt/new"].mode) == (1000, 0o640)
    assert system.entries["opt/new"].content is None, "only files that a check reads are opened"
    assert layers[1].removed == {"etc/gone"}


def test_a_layer_that_is_linked_counts_as_often_as_it_is_listed() -> None:
    assert len(read_archive(_chunks(_shared_layers()))) == 2


@pytest.mark.parametrize(
    "data",
    [b"", b"not a tar at all", _docker_layout(LOWER)[:2500], _tar({"x/layer.tar": LOWER}), _tar({"manifest.json": b"[]"}),
     _tar({"manifest.json": b'[{"Layers": ["missing/layer.tar"]}]'})],
    ids=["nothing", "no tar", "cut short", "no manifest", "empty manifest", "missing layer"],
)  # fmt: skip
def test_a_broken_archive_is_the_engines_fault_and_no_verdict(data: bytes) -> None:
    with pytest.raises(EdgeError, match="archive of the image cannot be read"):
        read_archive(_chunks(data))


def test_a_folder_of_the_engine_is_read_with_owners_links_and_contents(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_text("root\n")
    (tmp_path / "etc" / "other").write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    entries = {entry.path: entry for entry in read_overlay_folder(tmp_path).entries}
    assert set(entries) == {"etc", "etc/passwd", "etc/other", "link"}
    assert entries["etc/passwd"].content == b"root\n"
    assert entries["etc/other"].content is None
    assert (entries["link"].kind, entries["link"].link) == ("link", "/etc/passwd")


@pytest.mark.parametrize(
    "attrs",
    [{}, {"GraphDriver": {"Name": "overlayfs", "Data": None}}, {"GraphDriver": {"Name": "overlay2", "Data": {"UpperDir": "/nowhere"}},
     "RootFS": {"Layers": ["a"]}}],
    ids=["no driver", "another store", "folders of another machine"],
)  # fmt: skip
def test_folders_that_cannot_be_read_here_are_left_to_the_archive(attrs: dict[str, object]) -> None:
    assert overlay_folders(attrs) is None
