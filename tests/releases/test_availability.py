"""Is a package there, at exactly one version; who has it, for which machines, with which bytes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.releases.pages import EXTRA, MAIN, file, page, v, wheels
from tooling.findings import Severity
from tooling.releases.addresses import AddressRole
from tooling.releases.availability import check_availability, nearest_releases
from tooling.releases.files import ProjectFiles, matches, parse_file_name, released_versions
from tooling.releases.serving import check_serving, find_serving, is_own_only
from tooling.releases.targets import Target, make_targets
from tooling.releases.wheels import best_wheel, check_cooldown, check_hashes, check_wheels, collect_sha256

CUBIN, PYTHON = "flashinfer-cubin", "flashinfer-python"
AMD64, ARM64 = Target(platform="linux/amd64"), Target(platform="linux/arm64")

NAMES = {
    "a wheel": ("flashinfer_python-0.6.13-py3-none-any.whl", "0.6.13", "wheel"),
    "a wheel with a build number": ("flashinfer_python-0.6.13-1-py3-none-any.whl", "0.6.13", "wheel"),
    "a local version": ("flashinfer_python-0.6.13+cu130-cp312-cp312-linux_x86_64.whl", "0.6.13+cu130", "wheel"),
    "a post release": ("flashinfer_python-0.6.11.post2.tar.gz", "0.6.11.post2", "sdist"),
    "old spelling": ("flashinfer-python-0.2.3.tar.gz", "0.2.3", "sdist"),
}


@pytest.mark.parametrize(("name", "version", "kind"), NAMES.values(), ids=NAMES)
def test_file_names_are_read_by_their_standards(name: str, version: str, kind: str) -> None:
    assert parse_file_name(name, PYTHON) == (v(version), kind)


@pytest.mark.parametrize(
    "name",
    ["flashinfer_python-0.6.13.whl", "flashinfer_python-x-py3-none-any.whl", "torch-2.0-py3-none-any.whl",
     "flashinfer_python-0.6.13.egg", "flashinfer_python-0.6.13.tar.gz.asc", "", "-.whl"],
)  # fmt: skip
def test_every_other_name_is_none(name: str) -> None:
    assert parse_file_name(name, PYTHON) is None


@pytest.mark.parametrize(
    ("found", "wanted", "same"),
    [("0.6.13", "0.6.13", True), ("0.6.13.0", "0.6.13", True), ("0.6.13+cu130", "0.6.13", True),
     ("0.6.13", "0.6.13+cu130", False), ("0.6.13.post1", "0.6.13", False), ("0.6.13rc1", "0.6.13", False)],
)  # fmt: skip
def test_exactly_that_version_as_pep_440_has_it(found: str, wanted: str, same: bool) -> None:
    assert matches(v(found), v(wanted)) is same


def test_what_is_there_gives_no_finding() -> None:
    assert check_availability(CUBIN, v("0.6.13"), [wheels(CUBIN, "0.6.12"), wheels(CUBIN, "0.6.13", index=EXTRA)]) == []


def test_what_is_missing_names_every_index_and_the_nearest_releases() -> None:
    pages = [wheels(CUBIN, "0.6.9", "0.6.10", "0.6.12", "0.6.13rc1", "0.7.0"), page(CUBIN, index=EXTRA)]
    (finding,) = check_availability(CUBIN, v("0.6.13"), pages)
    assert finding.check == "not-published"
    assert finding.detail == f"flashinfer-cubin 0.6.13 is not published; asked: {MAIN}, {EXTRA}"
    assert finding.hint == "nearest releases: 0.6.9, 0.6.10, 0.6.12, 0.7.0"


def test_a_package_that_nobody_has_is_said_so() -> None:
    assert "no index has such a package" in check_availability("x", v("1"), [page("x")])[0].detail
    assert "no-index" in check_availability("x", v("1"), [])[0].detail


def test_yanked_counts_only_when_every_file_is() -> None:
    gone = wheels(CUBIN, "0.6.13", yanked=True, yanked_reason="too large")
    (finding,) = check_availability(CUBIN, v("0.6.13"), [gone, wheels(CUBIN, "0.6.12")])
    assert (finding.check, "too large" in finding.detail) == ("yanked", True)
    assert check_availability(CUBIN, v("0.6.13"), [gone, wheels(CUBIN, "0.6.13", index=EXTRA)]) == []
    assert released_versions([gone]) == []


def test_pre_releases_are_near_to_pre_releases_only() -> None:
    pages = [wheels(CUBIN, "0.6.12", "0.6.13rc1", "0.6.13", "0.6.14rc1")]
    assert nearest_releases(v("0.6.12.post1"), pages) == [v("0.6.12"), v("0.6.13")]
    assert v("0.6.13rc1") in nearest_releases(v("0.6.13rc2"), pages)


WHEELS = {
    "any": ("flashinfer_cubin-1-py3-none-any.whl", True, True),
    "manylinux of one machine": ("flashinfer_cubin-1-cp312-cp312-manylinux_2_28_x86_64.whl", True, False),
    "both machines in one name": ("flashinfer_cubin-1-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl", False, True),
    "the stable ABI of an older Python": ("flashinfer_cubin-1-cp39-abi3-manylinux_2_17_x86_64.whl", True, False),
    "another Python": ("flashinfer_cubin-1-cp311-cp311-manylinux_2_17_x86_64.whl", False, False),
    "a newer glibc": ("flashinfer_cubin-1-py3-none-manylinux_2_40_x86_64.whl", False, False),
    "plain linux": ("flashinfer_cubin-1-cp312-cp312-linux_x86_64.whl", True, False),
    "manylinux1 knows no arm": ("flashinfer_cubin-1-py3-none-manylinux1_aarch64.whl", False, False),
    "another system": ("flashinfer_cubin-1-py3-none-win_amd64.whl", False, False),
    "an sdist": ("flashinfer_cubin-1.tar.gz", False, False),
}  # fmt: skip


@pytest.mark.parametrize(("name", "amd64", "arm64"), WHEELS.values(), ids=WHEELS)
def test_which_wheel_fits_which_machine(name: str, amd64: bool, arm64: bool) -> None:
    found = file(name, CUBIN)
    assert (AMD64.takes(found), ARM64.takes(found)) == (amd64, arm64)


def test_requires_python_counts() -> None:
    name = "flashinfer_cubin-1-py3-none-any.whl"
    assert not AMD64.takes(file(name, CUBIN, requires_python=">=3.13"))
    assert AMD64.takes(file(name, CUBIN, requires_python="<4.0,>=3.10"))
    assert AMD64.takes(file(name, CUBIN, requires_python="what?"))


def test_machines_come_from_platforms_and_variables() -> None:
    found = make_targets(["linux/amd64", "linux/arm64"], {"PYTHON_VERSION": "3.11.9", "UBUNTU_VERSION": "22.04"})
    assert [(target.uv_platform, target.python) for target in found] == [
        ("x86_64-manylinux_2_35", "3.11"), ("aarch64-manylinux_2_35", "3.11"),
    ]  # fmt: skip
    (default,) = make_targets(["linux/amd64"], {"PYTHON_VERSION": "three"})
    assert (default.python, default.glibc) == ("3.12", 39)


def test_a_machine_without_a_wheel_is_named_alone() -> None:
    pages = [page(CUBIN, "flashinfer_cubin-1-cp312-cp312-manylinux_2_28_x86_64.whl")]
    (finding,) = check_wheels(CUBIN, v("1"), pages, [AMD64, ARM64])
    assert (finding.severity, "linux/arm64" in finding.detail) == (Severity.ERROR, True)


@pytest.mark.parametrize(("version", "severity"), [("0.4.1", Severity.WARNING), ("0.4.1rc1", Severity.ERROR)])
def test_an_sdist_alone_warns_for_finals_and_refuses_pre_releases(version: str, severity: Severity) -> None:
    (finding,) = check_wheels(PYTHON, v(version), [page(PYTHON, f"flashinfer_python-{version}.tar.gz")], [AMD64])
    assert (finding.check, finding.severity) == ("no-wheel", severity)


def test_the_cooldown_counts_from_the_first_file() -> None:
    now = datetime(2026, 3, 10, tzinfo=UTC)
    old, new = (wheels(CUBIN, "1", uploaded=now - timedelta(days=days)) for days in (8, 6))
    check = lambda pages, **more: list(check_cooldown(CUBIN, v("1"), pages, days=7, now=now, **{"allowed": False, **more}))  # noqa: E731  # fmt: skip
    assert check([old]) == []
    (finding,) = check([new])
    assert finding.severity is Severity.ERROR
    assert "wait until 2026-03-11" in finding.hint
    assert check([new], allowed=True)[0].severity is Severity.WARNING
    assert check([old, new]) == []
    assert check([wheels(CUBIN, "1")])[0].severity is Severity.WARNING
    assert list(check_cooldown(CUBIN, v("1"), [new], days=0, now=now, allowed=False)) == []


def test_indexes_that_show_different_bytes_for_a_name_conflict() -> None:
    pages = [wheels(CUBIN, "1", sha256="a" * 64), wheels(CUBIN, "1", sha256="b" * 64, index=EXTRA)]
    (finding,) = check_hashes(CUBIN, v("1"), pages)
    assert "aaaaaaaaaaaa" in finding.detail
    assert EXTRA in finding.detail
    assert list(check_hashes(CUBIN, v("1"), [pages[0], pages[0]])) == []


def test_digests_are_those_of_wheels_that_a_machine_takes() -> None:
    pages = [
        page(CUBIN, "flashinfer_cubin-1-py3-none-any.whl", "flashinfer_cubin-1.tar.gz", sha256="a" * 64),
        page(CUBIN, "flashinfer_cubin-1-py3-none-win_amd64.whl", sha256="b" * 64),
        page(CUBIN, "flashinfer_cubin-1-1-py3-none-any.whl", sha256="c" * 64, yanked=True),
        page(CUBIN, "flashinfer_cubin-1-2-py3-none-any.whl"),
    ]
    assert collect_sha256(v("1"), pages, [AMD64]) == {"flashinfer_cubin-1-py3-none-any.whl": "a" * 64}


def test_metadata_is_read_from_a_wheel_that_fits_and_has_a_copy() -> None:
    pages = [
        page(CUBIN, "flashinfer_cubin-1-py3-none-win_amd64.whl", has_metadata=True),
        page(CUBIN, "flashinfer_cubin-1-1-py3-none-any.whl"),
        page(CUBIN, "flashinfer_cubin-1-2-py3-none-any.whl", has_metadata=True),
    ]
    best = best_wheel(v("1"), pages, [AMD64])
    assert best is not None
    assert best.filename == "flashinfer_cubin-1-2-py3-none-any.whl"
    assert best_wheel(v("1"), [page(CUBIN, "flashinfer_cubin-1.tar.gz")], [AMD64]) is None


def extra(*versions: str, role: AddressRole = AddressRole.EXTRA, index: str = EXTRA) -> ProjectFiles:
    return wheels(CUBIN, *versions, index=index, role=role)


SERVING = {
    "one index": ([wheels(CUBIN, "1")], (MAIN,), (MAIN,), None),
    "the extra one alone has it": ([wheels(CUBIN, "0.9"), extra("1")], (MAIN, EXTRA)[1:], (EXTRA,), None),
    "both have it": ([wheels(CUBIN, "1"), extra("1")], (MAIN, EXTRA), (EXTRA,), None),
    "uv stops at the first index": ([wheels(CUBIN, "1"), extra("0.9")], (MAIN,), (), EXTRA),
    "find-links add to any index": ([wheels(CUBIN, "0.9"), extra("1", role=AddressRole.FIND_LINKS)], (EXTRA,), (EXTRA,), None),
    "nobody": ([wheels(CUBIN, "0.9"), extra()], (), (), MAIN),
    "an empty extra index hides nothing": ([wheels(CUBIN, "1"), extra()], (MAIN,), (MAIN,), None),
}  # fmt: skip


@pytest.mark.parametrize(("pages", "pip", "uv", "stops"), SERVING.values(), ids=SERVING)
def test_who_serves_a_package_by_pips_and_uvs_rules(
    pages: list[ProjectFiles], pip: tuple[str, ...], uv: tuple[str, ...], stops: str | None
) -> None:
    serving = find_serving(CUBIN, v("1"), pages)
    assert (serving.pip, serving.uv, serving.uv_stops_at) == (pip, uv, stops)
    assert serving.render().startswith("flashinfer-cubin 1: ")


EXPECTED = {
    "the main index by default": ([wheels(CUBIN, "1")], None, False, None),
    "the own index by default": ([page(CUBIN), extra("1")], None, False, None),
    "a folder of the own index": ([page(CUBIN), extra("1", index=EXTRA + "cu130/")], None, False, None),
    "a stranger": ([page(CUBIN), extra("1", index="https://x.invalid/")], None, False, Severity.WARNING),
    "the main index where only the own one has it": ([wheels(CUBIN, "1")], None, True, Severity.WARNING),
    "another than stated": ([wheels(CUBIN, "1")], EXTRA, False, Severity.ERROR),
    "as stated": ([wheels(CUBIN, "1")], MAIN, True, None),
    "beside the stated one": ([wheels(CUBIN, "1"), extra("1")], MAIN, False, Severity.ERROR),
}


@pytest.mark.parametrize(("pages", "stated", "own_only", "severity"), EXPECTED.values(), ids=EXPECTED)
def test_an_unexpected_index_is_a_finding(
    pages: list[ProjectFiles], stated: str | None, own_only: bool, severity: Severity | None
) -> None:
    serving = find_serving(CUBIN, v("1"), pages)
    found = check_serving(serving, stated=stated, own_index=EXTRA, own_only=own_only, pages=pages)
    assert [item.severity for item in found] == ([] if severity is None else [severity])


def test_from_which_release_on_a_package_is_on_the_own_index_only() -> None:
    table = {CUBIN: "0.6.14"}
    assert [is_own_only(CUBIN, v(text), table) for text in ("0.6.13", "0.6.14", "0.7.4")] == [False, True, True]
    assert not is_own_only(PYTHON, v("9"), table)
