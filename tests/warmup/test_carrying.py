"""A tuned cache carried to another machine, by function and by command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tooling.cli import main
from tooling.errors import EdgeError
from tooling.warmup import carrying, runtime
from tooling.warmup.bundle import parse_bundle, render_bundle
from tooling.warmup.errors import BundleError
from tooling.warmup.runtime import Installed

HASH = "0123456789abcdef0123"
HERE = {"flashinfer_version": "0.6.13", "gpu": "NVIDIA H200"}
ENTRIES = {"('bf16_gemm', 'R', ((1, 2),))": ["R", 1], "('é', 'R')": ["R", [1, 2]]}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache root with the file of a leader and a managed store."""
    folder = tmp_path / "root" / "0.6.13" / "sm90" / HASH
    entries = folder / "managed" / "v2" / "abc" / "entries"
    entries.mkdir(parents=True)
    (folder / "autotune_configs.json").write_text(json.dumps({"_metadata": {**HERE, "warmup_entries": 2}, **ENTRIES}))
    (folder / ".autotune_configs.json.lock").touch()
    (entries.parent / "manifest.json").write_text(json.dumps({**HERE, "cache_schema": "v2"}))
    (entries / "e1.json").write_text('{"key": "k", "runner": "R", "tactic": 1}')
    return folder


@pytest.fixture
def as_if(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes this machine's FlashInfer say that it runs in that environment."""

    def install(arch: str = "sm90", **changed: str) -> None:
        found = Installed(release="0.6.13", usable=True, gpu=True, arch=arch, metadata={**HERE, **changed})
        monkeypatch.setattr(runtime, "load_installed", lambda: found)

    return install


def test_a_cache_comes_out_of_a_bundle_as_it_went_in(cache: Path, tmp_path: Path, as_if: Callable[..., None]) -> None:
    as_if()
    bundle = carrying.export_cache(cache / "autotune_configs.json", tmp_path / "b.json", pins_sha256="sha256:p")
    assert (bundle.version, bundle.arch, bundle.identity, bundle.entries) == ("0.6.13", "sm90", HASH, 3)
    assert bundle.metadata == HERE
    placed = carrying.import_cache(tmp_path / "b.json", tmp_path / "other")
    assert all(not file.kept for file in placed)
    there = tmp_path / "other" / "0.6.13" / "sm90" / HASH
    for path in cache.rglob("*.json"):
        assert json.loads((there / path.relative_to(cache)).read_text()) == json.loads(path.read_text())
    assert not list(there.rglob(".b*"))


def test_one_spelling(cache: Path, tmp_path: Path) -> None:
    carrying.export_cache(cache, tmp_path / "b.json")
    text = (tmp_path / "b.json").read_text()
    assert render_bundle(parse_bundle(text, path="b.json")) == text


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"gpu": "NVIDIA B200"}, "gpu"), ({"arch": "sm100"}, "arch"), ({"cudnn_version": "9"}, "cudnn_version")],
)
def test_a_foreign_cache_is_refused_with_the_field_that_differs(
    cache: Path, tmp_path: Path, as_if: Callable[..., None], changed: dict[str, str], field: str
) -> None:
    as_if(**changed)
    carrying.export_cache(cache, tmp_path / "b.json")
    with pytest.raises(BundleError, match=field) as caught:
        carrying.import_cache(tmp_path / "b.json", tmp_path / "other")
    assert caught.value.field == field
    assert not (tmp_path / "other").exists()
    assert carrying.import_cache(tmp_path / "b.json", tmp_path / "other", unchecked=True)


def test_entries_that_are_there_already_are_kept(cache: Path, tmp_path: Path, as_if: Callable[..., None]) -> None:
    as_if()
    carrying.export_cache(cache, tmp_path / "b.json")
    file = cache / "autotune_configs.json"
    file.write_text(json.dumps({"_metadata": HERE, "own": ["R", 9]}))
    placed = carrying.import_cache(tmp_path / "b.json", tmp_path / "root")
    assert set(json.loads(file.read_text())) == {"_metadata", "own", *ENTRIES}
    assert [item.kept for item in placed if item.path.parent.name == "entries"] == ["it is there already"]


DAMAGE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a text changed": (lambda body: body["files"]["autotune_configs.json"].update(text="{}"), "DAMAGED"),
    "the version changed": (lambda body: body.update(version="0.6.14"), "DAMAGED"),
    "a file dropped": (lambda body: body["files"].popitem(), "DAMAGED"),
    "another kind": (lambda body: body.update(kind="evidence"), "BAD_BUNDLE"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_bundle_is_refused(cache: Path, tmp_path: Path, case: str) -> None:
    change, reason = DAMAGE[case]
    carrying.export_cache(cache, tmp_path / "b.json")
    body = json.loads((tmp_path / "b.json").read_text())
    change(body)
    with pytest.raises(BundleError) as caught:
        parse_bundle(json.dumps(body), path="b.json")
    assert caught.value.reason == reason


@pytest.mark.parametrize("name", ["../x.json", "/etc/x.json", "a/../../x.json", ".hidden.json", "x.py"])
def test_a_path_that_leads_out_is_refused_even_if_sealed(cache: Path, tmp_path: Path, name: str) -> None:
    from tooling.warmup import bundle as module

    bundle = carrying.export_cache(cache, tmp_path / "b.json")
    evil = render_bundle(
        module.Bundle(**{**{key: getattr(bundle, key) for key in bundle.__slots__}, "files": {name: "{}"}})
    )
    with pytest.raises(BundleError, match="no path below"):
        parse_bundle(evil, path="b.json")


def sealed(cache: Path, path: Path, **changed: Any) -> Path:
    """A carried cache whose digests are right, whatever it holds."""
    bundle = carrying.export_cache(cache, path)
    path.write_text(render_bundle(replace(bundle, **changed)))
    return path


def cache_text(entries: Any = ENTRIES, **metadata: Any) -> str:
    return json.dumps({"_metadata": {**HERE, **metadata}, **entries})


WRONG_CONTENTS: dict[str, tuple[dict[str, str], str, str]] = {
    "no JSON": ({"b.json": "{"}, "BAD_CONTENTS", ""),
    "a number": ({"b.json": "5"}, "BAD_CONTENTS", ""),
    "a list": ({"b.json": "[]"}, "BAD_CONTENTS", ""),
    "empty": ({"b.json": "{}"}, "BAD_CONTENTS", ""),
    "metadata is a number": ({"b.json": '{"_metadata": 5}'}, "BAD_CONTENTS", ""),
    "very deep": ({"b.json": "[" * 100_000}, "BAD_CONTENTS", ""),
    "half a surrogate": ({"b.json": cache_text({"\ud800": ["R", 1]})}, "BAD_CONTENTS", ""),
    "no entry": ({"b.json": cache_text({})}, "BAD_CONTENTS", ""),
    "an entry that is none": ({"b.json": cache_text({"k": ["R"]})}, "BAD_CONTENTS", ""),
    "a managed entry that is none": ({"managed/v2/a/entries/b.json": '{"key": "k"}'}, "BAD_CONTENTS", ""),
    "another GPU": ({"b.json": cache_text(gpu="NVIDIA B200")}, "TWO_ENVIRONMENTS", "gpu"),
    "a store of another GPU": ({"managed/v2/a/manifest.json": '{"gpu": "x"}'}, "TWO_ENVIRONMENTS", "gpu"),
}


@pytest.mark.parametrize("case", WRONG_CONTENTS)
def test_wrong_contents_are_refused_before_anything_is_placed_even_if_sealed(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    files, reason, field = WRONG_CONTENTS[case]
    path = sealed(cache, tmp_path / "b.json", files={"a.json": cache_text(), **files})
    with pytest.raises(BundleError, match=next(iter(files))) as caught:
        carrying.import_cache(path, tmp_path / "other", unchecked=True)
    assert (caught.value.reason, caught.value.field) == (reason, field)
    assert not (tmp_path / "other").exists()
    for action in ("show", "verify"):
        code, body = run(capsys, action, str(path))
        assert (code, body["error"]["reason"]) == (2, reason)
        assert field in body["error"]["message"]


def test_a_version_that_its_metadata_contradicts_is_refused(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"'0\.6\.13' in its metadata") as caught:
        carrying.load_bundle(sealed(cache, tmp_path / "b.json", version="0.6.14"))
    assert caught.value.field == "flashinfer_version"
    assert carrying.load_bundle(sealed(cache, tmp_path / "b.json", version="0.6.13+cu130")).entries == 3


def test_a_bundle_without_files_is_refused(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="holds no file"):
        carrying.load_bundle(sealed(cache, tmp_path / "b.json", files={}))


def test_half_a_surrogate_in_the_bundle_itself_is_refused(cache: Path, tmp_path: Path) -> None:
    carrying.export_cache(cache, tmp_path / "b.json")
    text = (tmp_path / "b.json").read_text().replace('"created": "', '"created": "\\ud800')
    with pytest.raises(BundleError) as caught:
        parse_bundle(text, path="b.json")
    assert caught.value.reason == "UNPARSABLE"


@pytest.mark.parametrize(
    "changed", [{"created": "\x1b[2J"}, {"metadata": {**HERE, "gpu": "a\nb"}}, {"tool_version": "\x9b1m"}]
)
def test_control_characters_reach_no_terminal(cache: Path, tmp_path: Path, changed: dict[str, Any]) -> None:
    path = sealed(cache, tmp_path / "b.json", files={"a.json": cache_text(**changed.get("metadata", {}))}, **changed)
    with pytest.raises(BundleError, match="holds a control character") as caught:
        carrying.load_bundle(path)
    assert caught.value.reason == "BAD_CONTENTS"


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_what_is_no_bundle_is_refused(text: str) -> None:
    with pytest.raises(BundleError, match=r"^b\.json: "):
        parse_bundle(text, path="b.json")


def test_a_folder_without_a_cache_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="neither a cache's folder"):
        carrying.export_cache(tmp_path, tmp_path / "b.json")
    (tmp_path / "0.6.13" / "sm90" / HASH).mkdir(parents=True)
    with pytest.raises(BundleError, match="which environment wrote it"):
        carrying.export_cache(tmp_path / "0.6.13" / "sm90" / HASH, tmp_path / "b.json")


def test_two_environments_do_not_go_into_one_bundle(cache: Path, tmp_path: Path) -> None:
    (cache / "rank-0-of-2.json").write_text(json.dumps({"_metadata": {**HERE, "gpu": "NVIDIA B200"}, **ENTRIES}))
    with pytest.raises(BundleError, match="differ in gpu"):
        carrying.export_cache(cache, tmp_path / "b.json")


def test_an_unwritable_target_says_its_errno(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EdgeError, match="Errno"):
        carrying.export_cache(cache, tmp_path / "file" / "b.json")
    carrying.export_cache(cache, tmp_path / "b.json")
    with pytest.raises(EdgeError, match="Errno"):
        carrying.import_cache(tmp_path / "b.json", tmp_path / "file", unchecked=True)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["cache", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_command_goes_all_the_way(
    cache: Path,
    tmp_path: Path,
    as_if: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    as_if()
    monkeypatch.setenv("VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR", str(tmp_path / "root"))
    file = str(tmp_path / "b.json")
    code, body = run(capsys, "export", file)
    assert (code, body["status"], body["entries"]) == (0, "exported", 3)
    assert run(capsys, "show", file)[1]["metadata"] == HERE
    assert run(capsys, "verify", file)[0] == 0
    code, body = run(capsys, "import", file, "--to", str(tmp_path / "other"))
    assert (code, len(body["placed"])) == (0, 3)
    as_if(gpu="NVIDIA B200")
    code, body = run(capsys, "verify", file)
    assert (code, body["status"], body["findings"][0]["reason"]) == (4, "foreign", "FOREIGN")
    code, body = run(capsys, "import", file, "--to", str(tmp_path / "third"))
    assert (code, body["status"]) == (4, "refused")
    assert not (tmp_path / "third").exists()
    assert run(capsys, "import", file, "--to", str(tmp_path / "third"), "--unchecked")[0] == 0


def test_bad_arguments_and_files_end_with_2(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "show", str(tmp_path / "no.json"))[0] == 2
    assert run(capsys, "show", str(cache / "autotune_configs.json"))[0] == 2
    code, body = run(capsys, "show", str(tmp_path / "b.json"), "--to", "x")
    assert (code, body["error"]["reason"]) == (2, "BAD_ARGUMENTS")


def test_several_caches_must_be_told_apart(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR", str(tmp_path / "root"))
    (cache.parent / HASH[::-1]).mkdir()
    code, body = run(capsys, "export", str(tmp_path / "b.json"))
    assert (code, body["error"]["reason"]) == (2, "NO_CACHE")
    assert HASH in body["error"]["message"]
    assert run(capsys, "export", str(tmp_path / "b.json"), "--from", str(cache))[0] == 0


def test_a_machine_without_flashinfer_cannot_verify(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "load_installed", Installed)
    carrying.export_cache(cache, tmp_path / "b.json")
    code, body = run(capsys, "verify", str(tmp_path / "b.json"))
    assert (code, body["error"]["reason"]) == (3, "NO_FLASHINFER")
