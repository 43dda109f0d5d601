"""The METADATA of one file on an index: the index's own copy, or read out of the wheel in byte ranges. Runs nothing."""

from __future__ import annotations

import hashlib
import zipfile
from typing import IO, cast

from tooling.edges.archives import BadArchiveError
from tooling.edges.index import IndexClient
from tooling.edges.ranged_archive import RangedFile
from tooling.errors import EdgeError
from tooling.releases.addresses import file_path, redact_url
from tooling.releases.files import ReleaseFile

MAX_METADATA_BYTES = 10_000_000


def fetch_metadata(client: IndexClient, file: ReleaseFile) -> str:
    """The wheel's core metadata (PEP 566, PEP 658).

    Raises:
        EdgeError: no answer, other bytes than the index promised (`WRONG_HASH`), no ranges, or no wheel inside.
    """
    if file.has_metadata and (found := _separate(client, file)) is not None:
        return found.decode("utf-8", "replace")
    try:
        return _from_wheel(client, file).decode("utf-8", "replace")
    except (BadArchiveError, zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as cause:
        raise EdgeError(
            f"{redact_url(file.url)}: no METADATA can be read out of it: {cause}",
            hint="the file on the index is damaged; ask its owner",
            reason="BAD_WHEEL",
        ) from cause


def _separate(client: IndexClient, file: ReleaseFile) -> bytes | None:
    """The index's own copy beside the wheel, or None if it is not there after all."""
    url = f"{file.url}.metadata"
    if (path := file_path(url)) is not None:
        body = path.read_bytes() if path.is_file() else None
    else:
        answer = client.http.fetch(url)
        body = answer.body if answer.status == 200 else None
    if body is not None and file.metadata_sha256 not in {None, hashlib.sha256(body).hexdigest()}:
        raise EdgeError(
            f"{redact_url(url)}: its sha256 is not what the index shows",
            hint="do not install from there before its owner has explained this",
            reason="WRONG_HASH",
        )
    return body


def _from_wheel(client: IndexClient, file: ReleaseFile) -> bytes:
    with _open(client, file) as stream, zipfile.ZipFile(stream) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA") and name.count("/") == 1]
        if len(names) != 1:
            raise ValueError(f"found {len(names)} METADATA files in it, expected one")
        if archive.getinfo(names[0]).file_size > MAX_METADATA_BYTES:
            raise ValueError("its METADATA is larger than any real one")
        return archive.read(names[0])


def _open(client: IndexClient, file: ReleaseFile) -> IO[bytes]:
    if (path := file_path(file.url)) is not None:
        return path.open("rb")
    return cast("IO[bytes]", RangedFile(client.http, file.url))
