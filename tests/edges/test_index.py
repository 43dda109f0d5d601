"""The index client against a real server on loopback, folders, and every fault that real indexes show."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from packaging.version import Version

from tests.edges.local_index import JSON_TYPE, LocalIndex, serve_index
from tooling.edges import index_http
from tooling.edges.index import IndexClient
from tooling.edges.index_cache import PageCache
from tooling.edges.pip_config import load_index_settings
from tooling.errors import EdgeError, InputError
from tooling.releases.files import ProjectFiles

CUBIN = "flashinfer-cubin"


@pytest.fixture
def client(local_index: LocalIndex, bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., IndexClient]:
    """A new client each time it is called, on the local index unless the settings say another."""

    def make(**settings: str) -> IndexClient:
        monkeypatch.setenv("PIP_INDEX_URL", local_index.simple)
        for name, value in settings.items():
            monkeypatch.setenv(f"PIP_{name.upper()}", value)
        return IndexClient(load_index_settings(), cache=PageCache(folder=bare_machine / "cache"))

    return make


def fails(client: IndexClient, reason: str, project: str = CUBIN) -> EdgeError:
    with pytest.raises(EdgeError) as caught:
        client.fetch_project(project)
    assert caught.value.reason == reason, caught.value
    return caught.value


def only(pages: list[ProjectFiles]) -> ProjectFiles:
    (page,) = pages
    return page


@pytest.mark.parametrize("html", [False, True], ids=["JSON", "HTML"])
def test_a_page_becomes_files_in_both_formats(
    html: bool, local_index: LocalIndex, client: Callable[..., IndexClient]
) -> None:
    local_index.html_only = html
    wheel = local_index.add_wheel(
        CUBIN, "0.6.13", requires=["numpy"], yanked="size limit & more", requires_python=">=3.10"
    )
    local_index.add_sdist(CUBIN, "0.6.12")
    page = only(client().fetch_project("FlashInfer_Cubin"))
    assert page.index == local_index.simple
    assert page.project == CUBIN
    file = page.of(Version("0.6.13"))[0]
    assert (file.filename, file.kind, file.version) == (wheel.filename, "wheel", Version("0.6.13"))
    assert (file.yanked, file.yanked_reason, file.requires_python) == (True, "size limit & more", ">=3.10")
    assert file.has_metadata
    assert file.sha256 is not None
    assert len(file.sha256) == 64
    assert page.of(Version("0.6.12"))[0].kind == "sdist"
    if not html:
        assert file.uploaded == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        assert file.size_bytes == len(wheel.data)


def test_a_project_that_no_index_knows_has_no_files(client: Callable[..., IndexClient]) -> None:
    assert only(client().fetch_project("unknown")).files == ()


def test_every_address_answers_for_itself(
    local_index: LocalIndex, client: Callable[..., IndexClient], tmp_path: Path
) -> None:
    local_index.add_wheel("flashinfer-python", "0.6.14")
    folder = tmp_path / "wheels"
    folder.mkdir()
    file = local_index.add_wheel(CUBIN, "0.6.14")
    (folder / file.filename).write_bytes(file.data)
    local_index.files.remove(file)
    pages = client(find_links=f"{folder} {tmp_path / 'missing'}").fetch_project(CUBIN)
    assert [(page.index, len(page.files)) for page in pages] == [
        (local_index.simple, 0), (str(folder), 1), (str(tmp_path / "missing"), 0),
    ]  # fmt: skip


def test_no_index_asks_find_links_only(
    local_index: LocalIndex, client: Callable[..., IndexClient], tmp_path: Path
) -> None:
    pages = client(no_index="1", find_links=str(tmp_path)).fetch_project(CUBIN)
    assert [page.index for page in pages] == [str(tmp_path)]
    assert local_index.log == []


def test_a_file_index_and_its_missing_folders(client: Callable[..., IndexClient], tmp_path: Path) -> None:
    project = tmp_path / "simple" / CUBIN
    project.mkdir(parents=True)
    (project / "index.html").write_text(
        '<html><a href="../../f/flashinfer_cubin-0.6.14-py3-none-any.whl#sha256=AB">x</a></html>'
    )
    ready = client(index_url=(tmp_path / "simple").as_uri())
    file = only(ready.fetch_project(CUBIN)).files[0]
    assert file.filename == "flashinfer_cubin-0.6.14-py3-none-any.whl"
    assert file.sha256 == "ab"
    assert file.url == (tmp_path / "f" / file.filename).as_uri()
    assert only(ready.fetch_project("unknown")).files == ()
    assert only(client(index_url=(tmp_path / "nowhere").as_uri()).fetch_project(CUBIN)).files == ()


def test_find_links_pages_hold_many_projects(
    local_index: LocalIndex, client: Callable[..., IndexClient], tmp_path: Path
) -> None:
    links = '<html><a href="flashinfer_cubin-0.6.14-py3-none-any.whl">a</a><a href="torch-2.11.0-py3-none-any.whl">b</a></html>'
    local_index.pages["/links.html"] = (200, "text/html", links.encode())
    (tmp_path / "page.html").write_text(links)
    direct = f"{local_index.url}/d/flashinfer_cubin-0.6.15-py3-none-any.whl"
    pages = client(no_index="1", find_links=f"{local_index.url}/links.html {tmp_path}/page.html {direct}")
    found = [[file.filename for file in page.files] for page in pages.fetch_project(CUBIN)]
    assert found == [
        ["flashinfer_cubin-0.6.14-py3-none-any.whl"],
        ["flashinfer_cubin-0.6.14-py3-none-any.whl"],
        ["flashinfer_cubin-0.6.15-py3-none-any.whl"],
    ]


def test_names_that_are_no_wheel_are_left_out_and_kept_aside(
    local_index: LocalIndex, client: Callable[..., IndexClient]
) -> None:
    local_index.add_wheel(CUBIN, "0.6.13")
    for name in [
        "flashinfer_cubin-latest-py3-none-any.whl",
        "flashinfer_cubin.whl",
        "torch-2.0-py3-none-any.whl",
        "notes.txt",
    ]:
        file = local_index.add_wheel(CUBIN, "9")
        file.filename = name
    page = only(client().fetch_project(CUBIN))
    assert [str(file.version) for file in page.files] == ["0.6.13"]
    assert page.skipped == (
        "flashinfer_cubin-latest-py3-none-any.whl", "flashinfer_cubin.whl", "torch-2.0-py3-none-any.whl",
    )  # fmt: skip


def test_one_file_listed_twice_is_one_file_but_two_hashes_are_two_claims(
    local_index: LocalIndex, client: Callable[..., IndexClient]
) -> None:
    for claims in ({}, {}, {"hashes": {"sha256": "0" * 64}}):
        local_index.add_wheel(CUBIN, "0.6.13", claims=claims)
    assert len(only(client().fetch_project(CUBIN)).files) == 2


def test_thousands_of_files_are_read(local_index: LocalIndex, client: Callable[..., IndexClient]) -> None:
    links = "".join(f'<a href="/f/flashinfer_cubin-0.{n}-py3-none-any.whl">x</a>' for n in range(2000))
    local_index.pages[f"/simple/{CUBIN}/"] = (200, "text/html", f"<html>{links}</html>".encode())
    assert len(only(client().fetch_project(CUBIN)).files) == 2000


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (JSON_TYPE, b'{"files": ['),
        (JSON_TYPE, b"[]"),
        (JSON_TYPE, b'{"name": "x", "files": [{"filename": 3}], "meta": {"api-version": "1.0"}}'),
        (JSON_TYPE, b'{"name": "x", "files": [], "meta": {"api-version": "2.0"}}'),
        (JSON_TYPE, b"[" * 100_000),
        ("application/octet-stream", b"\x00\x01"),
        ("text/html", b"\x89PNG\x00"),
    ],
    ids=["truncated", "a list", "a wrong type", "another format", "nested deeply", "binary", "binary called HTML"],
)
def test_a_malformed_page_says_which(
    content_type: str, body: bytes, local_index: LocalIndex, client: Callable[..., IndexClient]
) -> None:
    local_index.pages[f"/simple/{CUBIN}/"] = (200, content_type, body)
    error = fails(client(), "MALFORMED")
    assert local_index.simple in error.message
    assert CUBIN in error.message


def test_a_page_that_asks_for_a_newer_minor_format_is_read(
    local_index: LocalIndex, client: Callable[..., IndexClient]
) -> None:
    body = b'{"name": "x", "files": [], "meta": {"api-version": "1.99"}}'
    local_index.pages[f"/simple/{CUBIN}/"] = (200, JSON_TYPE, body)
    assert only(client().fetch_project(CUBIN)).files == ()


def test_a_page_is_kept_and_asked_about(local_index: LocalIndex, client: Callable[..., IndexClient]) -> None:
    local_index.add_wheel(CUBIN, "0.6.13")
    ready = client()
    first = ready.fetch_project(CUBIN)
    assert ready.fetch_project(CUBIN) is first
    assert len(local_index.log) == 1
    assert client().fetch_project(CUBIN) == first
    assert "if-none-match" in local_index.log[1][1]
    local_index.add_wheel(CUBIN, "0.6.14")
    assert len(only(client().fetch_project(CUBIN)).files) == 2


def test_a_damaged_or_unwritable_cache_is_no_cache(
    local_index: LocalIndex, client: Callable[..., IndexClient], bare_machine: Path
) -> None:
    local_index.add_wheel(CUBIN, "0.6.13")
    first = client().fetch_project(CUBIN)
    (kept,) = (bare_machine / "cache").iterdir()
    assert kept.parent.stat().st_mode & 0o077 == 0
    kept.write_bytes(kept.read_bytes()[:-3])
    assert client().fetch_project(CUBIN) == first
    assert "if-none-match" not in local_index.log[1][1]
    kept.unlink()
    (bare_machine / "cache").rmdir()
    (bare_machine / "cache").write_text("a file where the folder should be")
    assert client().fetch_project(CUBIN) == first


def test_credentials_go_to_their_index_and_nowhere_else(
    local_index: LocalIndex, client: Callable[..., IndexClient], bare_machine: Path
) -> None:
    local_index.credentials = ("me", "s3cret/")
    local_index.add_wheel(CUBIN, "0.6.13")
    with serve_index() as other:
        other.add_wheel(CUBIN, "0.6.13")
        ready = client(index_url=local_index.with_credentials("me", "s3cret%2F"), extra_index_url=other.simple)
        pages = ready.fetch_project(CUBIN)
        assert [len(page.files) for page in pages] == [1, 1]
        assert all("authorization" not in headers for _, headers in other.log)
    assert "s3cret" not in repr(pages)
    assert "s3cret" not in repr(ready.settings)
    for kept in (bare_machine / "cache").iterdir():
        assert b"s3cret" not in kept.read_bytes()


def test_a_redirect_to_another_host_takes_no_credentials_along(
    local_index: LocalIndex, client: Callable[..., IndexClient]
) -> None:
    with serve_index() as other:
        other.url = other.url.replace("127.0.0.1", "localhost")
        other.add_wheel(CUBIN, "0.6.13")
        local_index.credentials = ("me", "secret")
        local_index.redirects[f"/simple/{CUBIN}/"] = f"{other.simple}{CUBIN}/"
        page = only(client(index_url=local_index.with_credentials("me", "secret")).fetch_project(CUBIN))
        assert page.index == local_index.simple
        assert page.files[0].url.startswith(other.url)
        assert all("authorization" not in headers for _, headers in other.log)


@pytest.mark.parametrize("given", [True, False], ids=["wrong ones", "none"])
def test_refused_credentials_are_an_error_without_them_in_it(
    given: bool, local_index: LocalIndex, client: Callable[..., IndexClient]
) -> None:
    local_index.credentials = ("me", "right")
    url = local_index.with_credentials("me", "wr0ng") if given else local_index.simple
    error = fails(client(index_url=url), "CREDENTIALS")
    assert "wr0ng" not in error.message + error.hint
    assert local_index.simple in error.message


def test_a_forbidden_page_without_credentials_is_a_missing_one(
    local_index: LocalIndex, client: Callable[..., IndexClient]
) -> None:
    local_index.pages[f"/simple/{CUBIN}/"] = (403, "text/plain", b"AccessDenied")
    assert only(client().fetch_project(CUBIN)).files == ()


def test_a_fault_that_passes_is_retried_and_one_that_stays_is_an_error(
    local_index: LocalIndex, client: Callable[..., IndexClient]
) -> None:
    local_index.add_wheel(CUBIN, "0.6.13")
    local_index.failures = [503]
    assert only(client(retries="1").fetch_project(CUBIN)).files
    local_index.failures = [500, 502]
    error = fails(client(retries="1"), "SERVER_ERROR")
    assert "502" in error.message


def test_a_slow_index_is_left_after_pips_timeout(local_index: LocalIndex, client: Callable[..., IndexClient]) -> None:
    local_index.delay_s = 20.0
    error = fails(client(timeout="0.2"), "TIMEOUT")
    assert "0.2 s" in error.message


def test_a_page_that_drips_for_ever_is_left(
    local_index: LocalIndex, client: Callable[..., IndexClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drop may be late on a busy machine, but never as late as the timeout; the whole takes longer than its bound."""
    monkeypatch.setattr(index_http, "SLOW_FACTOR", 0.02)
    local_index.add_wheel(CUBIN, "0.6.13")
    local_index.drip = True
    assert "still sending" in fails(client(timeout="10"), "TIMEOUT").message


def test_a_page_that_breaks_off_is_an_error(local_index: LocalIndex, client: Callable[..., IndexClient]) -> None:
    local_index.add_wheel(CUBIN, "0.6.13")
    local_index.html_only = local_index.breaks_off = True
    fails(client(), "UNREACHABLE")
    local_index.breaks_off = False
    assert only(client().fetch_project(CUBIN)).files


def test_an_index_that_is_not_there_is_an_error(client: Callable[..., IndexClient]) -> None:
    with serve_index() as gone:
        url = gone.simple
    error = fails(client(index_url=url), "UNREACHABLE")
    assert url in error.message
    assert "refused" in error.message


@pytest.mark.parametrize("url", ["http://", "http://[::1", "ftp://x.invalid/simple"])
def test_an_address_that_is_none_is_refused(url: str, client: Callable[..., IndexClient]) -> None:
    with pytest.raises(InputError, match="is no address"):
        client(index_url=url)


def test_a_certificate_that_fails_says_how_to_give_the_bundle(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")

    def load(context: ssl.SSLContext) -> None:
        certificate.configure_cert(context)

    bundle = bare_machine / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    with serve_index(tls=load) as index:
        index.add_wheel(CUBIN, "0.6.13")
        monkeypatch.setenv("PIP_INDEX_URL", index.simple)
        monkeypatch.setenv("PIP_RETRIES", "5")
        error = fails(IndexClient(load_index_settings()), "CERTIFICATE")
        assert "PIP_CERT" in error.hint
        assert "global.cert" in error.hint
        monkeypatch.setenv("PIP_CERT", str(bundle))
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/etc/hostname")
        assert only(IndexClient(load_index_settings()).fetch_project(CUBIN)).files
        monkeypatch.delenv("PIP_CERT")
        monkeypatch.delenv("REQUESTS_CA_BUNDLE")
        monkeypatch.setenv("PIP_TRUSTED_HOST", "localhost")
        assert only(IndexClient(load_index_settings()).fetch_project(CUBIN)).files


def test_several_projects_are_asked_side_by_side(local_index: LocalIndex, client: Callable[..., IndexClient]) -> None:
    for name in ("a", "b", "c", "d", "e"):
        local_index.add_wheel(name, "1.0")
    found = client().fetch_projects(["a", "b", "c", "d", "E", "f"])
    assert {name: len(only(pages).files) for name, pages in found.items()} == {
        "a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 0,
    }  # fmt: skip


class TestRanges:
    def test_the_bytes_that_were_asked_for(self, local_index: LocalIndex, client: Callable[..., IndexClient]) -> None:
        file = local_index.add_wheel(CUBIN, "0.6.13")
        url = f"{local_index.url}/files/{file.filename}"
        part = client().fetch_range(url, 2, 12)
        assert part.data == file.data[2:12]
        assert part.total_bytes == len(file.data)
        assert client().fetch_range(url, -22, 0).data == file.data[-22:]
        assert client().fetch_range(url, -(10**9), 0).data == file.data
        assert client().fetch_range(url, len(file.data) - 3, len(file.data) + 50).data == file.data[-3:]

    @pytest.mark.parametrize(
        ("ranges", "reason"),
        [("ignored", "NO_RANGES"), ("wrong-span", "LYING_RANGES"), ("short", "LYING_RANGES"), ("no-header", "LYING_RANGES")],
    )  # fmt: skip
    def test_an_index_that_lies_is_found_out(
        self, ranges: str, reason: str, local_index: LocalIndex, client: Callable[..., IndexClient]
    ) -> None:
        file = local_index.add_wheel(CUBIN, "0.6.13")
        local_index.ranges = ranges  # type: ignore[assignment]
        with pytest.raises(EdgeError) as caught:
            client().fetch_range(f"{local_index.url}/files/{file.filename}", 0, 20)
        assert caught.value.reason == reason

    def test_a_file_that_is_gone_and_a_start_past_the_end(
        self, local_index: LocalIndex, client: Callable[..., IndexClient]
    ) -> None:
        file = local_index.add_wheel(CUBIN, "0.6.13")
        with pytest.raises(EdgeError, match="not there"):
            client().fetch_range(f"{local_index.url}/files/gone.whl", 0, 20)
        with pytest.raises(EdgeError, match="past the end"):
            client().fetch_range(f"{local_index.url}/files/{file.filename}", 10**6, 10**6 + 5)


@pytest.mark.parametrize("variable", ["PIP_CERT", "PIP_CLIENT_CERT"])
def test_a_certificate_file_that_is_not_there_is_a_wrong_setting(
    variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "nope.pem"))
    with pytest.raises(InputError, match=r"nope\.pem, and there is no such file"):
        IndexClient(load_index_settings()).fetch_project("flashinfer-python")
