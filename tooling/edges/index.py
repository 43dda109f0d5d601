"""Package indexes and find-links: what each of them has of a project. Knows no rule by which one of them is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from packaging.utils import canonicalize_name

from tooling.edges.index_cache import PageCache, conditions, default_cache
from tooling.edges.index_http import Answer, HttpReader, RangePart
from tooling.edges.index_pages import ACCEPT, is_archive, list_folder, parse_listing, parse_page, single_file
from tooling.edges.pip_config import IndexSettings
from tooling.errors import EdgeError
from tooling.releases.addresses import AddressRole, IndexAddress, file_path, parse_address
from tooling.releases.files import ProjectFiles

_NOT_THERE = {403, 404, 410}
"""403 is what object stores answer for a missing page; to a request with credentials it is an error before."""
_PARALLEL = 4


class IndexClient:
    """Asks every address of the settings. Answers are remembered while the client lives, pages also on disk."""

    def __init__(self, settings: IndexSettings, *, cache: PageCache | None = None) -> None:
        self.settings = settings
        self._cache = cache or default_cache()
        self._http: HttpReader | None = None
        self._known: dict[str, list[ProjectFiles]] = {}
        self._addresses: list[IndexAddress] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._http is not None:
            self._http.close()

    @property
    def addresses(self) -> list[IndexAddress]:
        """Where it asks, the main index first, then extra indexes, then find-links."""
        if self._addresses is None:
            settings = self.settings
            indexes = [] if settings.no_index else [settings.main or _public_index(), *settings.extra]
            self._addresses = [*indexes, *settings.find_links]
        return self._addresses

    @property
    def http(self) -> HttpReader:
        """For files and parts of files that the pages name."""
        if self._http is None:
            self._http = HttpReader(self.settings)
        return self._http

    def fetch_project(self, name: str) -> list[ProjectFiles]:
        """What each address has of the project, in order; an address that does not know it has no files.

        Raises:
            EdgeError: an address cannot be reached, refuses the credentials, or sends a malformed page.
        """
        name = canonicalize_name(name)
        if name not in self._known:
            self._known[name] = [self._ask(address, name) for address in self.addresses]
        return self._known[name]

    def fetch_projects(self, names: Iterable[str]) -> dict[str, list[ProjectFiles]]:
        """`fetch_project` for several, at most four at a time."""
        wanted = sorted({canonicalize_name(name) for name in names})
        if any(address.is_remote for address in self.addresses):
            _ = self.http
        with ThreadPoolExecutor(_PARALLEL) as pool:
            return dict(zip(wanted, pool.map(self.fetch_project, wanted), strict=True))

    def fetch_from(self, url: str, name: str) -> ProjectFiles:
        """What one further index has of the project, such as the library's own folder for one CUDA version."""
        return self._ask(parse_address(url, AddressRole.EXTRA), canonicalize_name(name))

    def list_names(self, url: str) -> list[str]:
        """The names of what an index's root page, or a folder's listing, links to; none if there is no such page."""
        address = parse_address(url, AddressRole.EXTRA)
        if not address.is_remote:
            folder = _path(address.url)
            return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        answer = self._fetch(address.url)
        return parse_listing(answer.body, answer.url) if answer.status == 200 else []

    def fetch_range(self, url: str, start: int, end: int) -> RangePart:
        """Part of a file, as `HttpReader.fetch_range`."""
        return self.http.fetch_range(url, start, end)

    def _ask(self, address: IndexAddress, name: str) -> ProjectFiles:
        if address.role is AddressRole.FIND_LINKS:
            return self._ask_find_links(address, name)
        page = address.url.rstrip("/") + f"/{name}/"
        return self._ask_page(address, page, name) if address.is_remote else _local_page(address, _path(page), name)

    def _ask_find_links(self, address: IndexAddress, name: str) -> ProjectFiles:
        if is_archive(address.url):
            return single_file(address.url, project=name, label=address.label, role=address.role)
        if address.is_remote:
            return self._ask_page(address, address.url, name)
        path = _path(address.url).expanduser()
        if path.suffix in {".html", ".htm"}:
            return _local_page(address, path, name)
        return list_folder(path, project=name, label=address.label, role=address.role)

    def _ask_page(self, address: IndexAddress, url: str, name: str) -> ProjectFiles:
        answer = self._fetch(url)
        if answer.status in _NOT_THERE:
            return ProjectFiles(project=name, index=address.label, role=address.role)
        if answer.status != 200:
            raise EdgeError(
                f"{address.label}: answers {answer.status} for {name}, expected a page or 404", reason="MALFORMED"
            )
        return parse_page(
            answer.body,
            answer.headers.get("content-type", "text/html"),
            url=answer.url,
            project=name,
            label=address.label,
            role=address.role,
        )

    def _fetch(self, url: str) -> Answer:
        kept = self._cache.load(url)
        answer = self.http.fetch(url, {"Accept": ACCEPT, "Cache-Control": "max-age=0", **conditions(kept)})
        if answer.status == 304 and kept is not None:
            return kept
        self._cache.save(url, answer)
        return answer


def _local_page(address: IndexAddress, path: Path, name: str) -> ProjectFiles:
    """A page of a `file:` index: a folder's `index.html`, or the file itself."""
    file = path if path.suffix in {".html", ".htm"} else path / "index.html"
    try:
        body = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return ProjectFiles(project=name, index=address.label, role=address.role)
    except OSError as cause:
        raise EdgeError(f"{address.label}: cannot be read: {cause.strerror}", reason="UNREADABLE") from cause
    url = file.resolve().as_uri()
    return parse_page(body, "text/html", url=url, project=name, label=address.label, role=address.role)


def _path(url: str) -> Path:
    return file_path(url) or Path(url)


def _public_index() -> IndexAddress:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT  # noqa: PLC0415 - 400 ms, paid only where an index is asked

    return parse_address(PYPI_SIMPLE_ENDPOINT, AddressRole.MAIN)
