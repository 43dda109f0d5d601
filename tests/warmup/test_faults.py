"""What may go wrong around a warm-up: ranks that die, hang or differ, and files that are broken, foreign or unwritable."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.warmup.environments import Release, newest_release

pytestmark = pytest.mark.online
Releases = Callable[[str], Release]
NEWEST = newest_release()
QUICK = {"FLASHINFER_WARMUP_TIMEOUT_S": "4"}


@pytest.fixture
def release(releases: Releases) -> Release:
    return releases("0.6.13")


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"tcp://127.0.0.1:{server.getsockname()[1]}"


def only_file(cache: Path) -> Path:
    (found,) = cache.rglob("autotune_configs.json")
    return found


def test_a_hanging_rank_is_named_with_its_last_step(release: Release, tmp_path: Path) -> None:
    """With `alone` the layers' sum over ranks is left out, so that the others come to our own meeting and wait there."""
    ran = release.run(tmp_path, ranks=2, mercy_s=0.5, environment=QUICK, fault="hang-1:host_bf16", alone=True)
    assert ran.statuses == [0, 137]
    assert ran.results[0]["error"] == "StuckError"
    assert "rank 1 (last step: tune" in ran.results[0]["message"]


def test_a_rank_that_raises_says_so_and_nobody_waits(release: Release, tmp_path: Path) -> None:
    ran = release.run(tmp_path, ranks=2, fault="raise-1:host_bf16", alone=True)
    assert ran.results[0]["error"] == "PeerFailedError"
    assert "rank 1 failed: RuntimeError: this layer is broken on purpose" in ran.results[0]["message"]
    assert ran.results[1]["error"] == "RuntimeError"


def test_a_follower_that_dies_is_named(release: Release, tmp_path: Path) -> None:
    ran = release.run(tmp_path, ranks=2, limit_s=45, environment=QUICK, fault="die-1:host_bf16", alone=True)
    assert ran.statuses == [0, 9]
    assert ran.results[0]["error"] == "StuckError"
    assert "rank 1" in ran.results[0]["message"]


def test_a_rank_that_hangs_between_two_rounds_of_tuning_together_ends_the_others(
    releases: Releases, tmp_path: Path
) -> None:
    """The exchange of timings runs on the warm-up's own group, so it ends with the warm-up's own deadline."""
    spec = {"environment": QUICK, "fault": "hang-1:host_fp16", "alone": True}
    ran = releases("0.6.16").run(tmp_path, ranks=2, mercy_s=0.5, **spec)
    assert ran.statuses == [0, 137]
    assert ran.results[0]["error"] == "StuckError"
    assert "rank 1 (last step: tune" in ran.results[0]["message"]
    assert list(tmp_path.rglob("*.json")) == []


def test_a_leader_that_dies_before_the_broadcast_is_named(release: Release, tmp_path: Path) -> None:
    ran = release.run(tmp_path, ranks=2, limit_s=45, environment=QUICK, fault="leader-gone")
    assert ran.statuses == [9, 0]
    assert ran.results[1]["error"] == "StuckError"
    assert "rank 0" in ran.results[1]["message"]
    assert list(tmp_path.rglob("*.json")) == []


@pytest.mark.parametrize("fault", ["away", "gone"])
def test_a_rank_that_never_comes_to_the_warm_up_is_named(release: Release, tmp_path: Path, fault: str) -> None:
    """Torch's own wait for it, while a group is made, names nobody."""
    address = free_address()
    ran = release.run(tmp_path, ranks=2, limit_s=12, environment=QUICK, fault=fault, meeting=address)
    assert ran.statuses == [0, {"away": 137, "gone": 9}[fault]]
    assert ran.results[0]["error"] == "StuckError"
    assert "waiting at 'start'" in ran.results[0]["message"]
    assert "behind: rank 1 (last step: has not begun)" in ran.results[0]["message"]


def test_ranks_that_meet_over_tcp_as_torchrun_has_it_find_each_other(release: Release, tmp_path: Path) -> None:
    assert release.run(tmp_path, ranks=2, meeting=free_address()).record["tuned"] == 10
    assert release.run(tmp_path, ranks=2, meeting=free_address()).record["warm"]


def test_a_leader_that_takes_the_meeting_place_with_it_is_named(release: Release, tmp_path: Path) -> None:
    """Over TCP the store that the ranks meet in is the leader's."""
    ran = release.run(tmp_path, ranks=2, limit_s=45, environment=QUICK, fault="leader-gone", meeting=free_address())
    assert ran.statuses == [9, 0]
    assert ran.results[1]["error"] == "StuckError"
    assert "rank 0" in ran.results[1]["message"]


def test_skip_sets_of_ranks_are_united(release: Release, tmp_path: Path) -> None:
    wish = {
        rank: {"environment": {"VLLM_FLASHINFER_AUTOTUNE_SKIP_OPS": text}} for rank, text in ((0, ""), (1, "host_gemm"))
    }
    ran = release.run(tmp_path, ranks=2, each=wish)
    assert ran.record["skip_ops"] == ["host_gemm"]
    assert ran.record["nothing_to_tune"]
    assert ran.passes(0, "tune")["skipped"] == 2


def test_ranks_with_different_releases_are_refused(release: Release, tmp_path: Path) -> None:
    ran = release.run(tmp_path, ranks=2, fault="other-release")
    for result in ran.results:
        assert result["error"] in {"DisagreementError", "PeerFailedError"}
    assert any("'0.0.1' on rank 1" in result["message"] for result in ran.results)


def test_ranks_with_different_strategies_are_refused(release: Release, tmp_path: Path) -> None:
    ran = release.run(tmp_path, ranks=2, each={1: {"cache_off": True}})
    assert any("'all_ranks' on rank 1" in result["message"] for result in ran.results)


def test_a_cache_that_only_one_rank_has_is_a_miss_for_all(release: Release, tmp_path: Path) -> None:
    roots = [tmp_path / "host a", tmp_path / "host b"]
    each = {rank: {"environment": {"VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR": str(root)}} for rank, root in enumerate(roots)}
    assert release.run(None, ranks=2, each=each).record["why_cold"] == "NO_CACHE"
    again = release.run(None, ranks=2, each=each).record
    assert (again["warm"], again["why_cold"]) == (False, "ASYMMETRIC_CACHE")
    assert again["ranks"][0]["tuned"] > 0


def test_files_of_ranks_that_do_not_belong_together_are_a_miss_for_all(releases: Releases, tmp_path: Path) -> None:
    release = releases("0.6.16")
    assert release.run(tmp_path, ranks=2).record["strategy"] == "synchronized"
    (lost,) = tmp_path.rglob("rank-1-of-2.json")
    body = json.loads(lost.read_text())
    key = next(key for key in body if not key.startswith("_"))
    body[key][1] = 2 - body[key][1]
    lost.write_text(json.dumps(body))
    again = release.run(tmp_path, ranks=2).record
    assert again["why_cold"] == "NOT_ONE_SET"
    assert again["difference"] == ""
    lost.unlink()
    assert release.run(tmp_path, ranks=2).record["why_cold"] == "ASYMMETRIC_CACHE"
    assert release.run(tmp_path, ranks=2).record["warm"]


BROKEN: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "truncated": (lambda data: data[: len(data) // 2], "TRUNCATED"),
    "empty": (lambda data: b"", "EMPTY"),
    "no metadata": (lambda data: _without(data, "_metadata"), "NO_METADATA"),
    "unknown metadata": (lambda data: _with(data, cudnn_frontend_version=None, gpu=None), "UNKNOWN_METADATA"),
    "not an object": (lambda data: b"[1, 2]", "NOT_A_CACHE"),
    "a byte-order mark": (lambda data: b"\xef\xbb\xbf" + data, "TRUNCATED"),
    "UTF-16": (lambda data: data.decode().encode("utf-16"), "TRUNCATED"),
    "bad entry": (lambda data: data.replace(b'"HostGemmRunner"', b"7", 1), "BAD_ENTRY"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_tuned_anew_and_replaced(release: Release, tmp_path: Path, case: str) -> None:
    damage, reason = BROKEN[case]
    release.run(tmp_path)
    file = only_file(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    again = release.run(tmp_path).record
    assert (again["warm"], again["why_cold"]) == (False, reason)
    assert file.read_bytes() == whole
    assert release.run(tmp_path).record["warm"]


@pytest.mark.parametrize("ranks", [1, 2], ids=["one rank", "two ranks"])
def test_a_file_that_flashinfer_itself_refuses_is_tuned_anew_and_replaced(
    release: Release, tmp_path: Path, ranks: int
) -> None:
    """Its bookkeeping is no entry for 0.6.13; without a new file every start would tune for ever."""
    release.run(tmp_path, ranks=ranks)
    file = only_file(tmp_path)
    whole = file.read_bytes()
    file.write_text(json.dumps({"_generation": 5, **json.loads(whole)}))
    record = release.run(tmp_path, ranks=ranks).record
    assert [rank["tuned"] for rank in record["ranks"]] == [10] * ranks
    assert (record["warm"], record["why_cold"], record["loaded"]) == (False, "NOT_LOADED", 0)
    assert any("FlashInfer could not load the cache" in warning for warning in record["warnings"])
    assert [rank["round_trip"]["other_tactic"] for rank in record["ranks"]] == [[]] * ranks, "the lowest rank decides"
    assert file.read_bytes() == whole
    assert release.run(tmp_path, ranks=ranks).record["warm"]


def test_entries_for_which_flashinfer_refuses_the_file_do_not_come_back(releases: Releases, tmp_path: Path) -> None:
    """No layer has their keys, so no tuning would ever replace them."""
    release = releases(NEWEST)
    release.run(tmp_path, forced="leader_broadcast")
    whole = json.loads(only_file(tmp_path).read_bytes())
    bad = {key: ["R", 1, 5] for key in ("another layer", "a third")}
    only_file(tmp_path).write_text(json.dumps({"_metadata": whole.pop("_metadata"), **bad, **whole}))
    assert release.run(tmp_path, forced="leader_broadcast").record["why_cold"] == "NOT_LOADED"
    assert release.run(tmp_path, forced="leader_broadcast").record["warm"]


def test_a_file_that_flashinfer_refuses_on_one_rank_alone_is_tuned_anew_by_all(
    releases: Releases, tmp_path: Path
) -> None:
    """A rank that hits where the other one misses would leave it in the average of timings for ever."""
    release = releases("0.6.16")
    release.run(tmp_path, ranks=2)
    (file,) = tmp_path.rglob("rank-1-of-2.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "_generation": 5}))
    record = release.run(tmp_path, ranks=2, environment=QUICK, limit_s=20).record
    assert (record["warm"], record["why_cold"]) == (False, "NOT_LOADED")
    assert [rank["tuned"] for rank in record["ranks"]] == [10, 10]
    assert release.run(tmp_path, ranks=2).record["warm"]


@pytest.mark.parametrize("ranks", [1, 2], ids=["one rank", "two ranks"])
def test_a_foreign_file_is_left_as_it_is(release: Release, tmp_path: Path, ranks: int) -> None:
    release.run(tmp_path, ranks=ranks)
    file = only_file(tmp_path)
    file.write_bytes(_with(file.read_bytes(), gpu="NVIDIA B200", flashinfer_version="0.6.18"))
    foreign = file.read_bytes()
    record = release.run(tmp_path, ranks=ranks).record
    assert record["why_cold"] == "FOREIGN"
    assert record["ranks"][0]["cache"]["fields"] == ["flashinfer_version", "gpu"]
    assert record["ranks"][0]["written"]["reason"] == "FOREIGN"
    assert file.read_bytes() == foreign
    assert len({rank["digest"] for rank in record["ranks"]}) == 1
    assert [rank["loaded"] for rank in record["ranks"]] == [0, 10][:ranks]


def test_a_wildcard_counts_as_equal_and_is_reported(release: Release, tmp_path: Path) -> None:
    release.run(tmp_path)
    only_file(tmp_path).write_bytes(_with(only_file(tmp_path).read_bytes(), gpu="*"))
    record = release.run(tmp_path).record
    assert record["warm"]
    assert record["ranks"][0]["cache"]["wildcards"] == ["gpu"]


def test_an_unwritable_cache_is_tuned_in_memory(release: Release, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    record = release.run(tmp_path / "file" / "cache", ranks=2).record
    assert record["ranks"][0]["written"]["reason"] == "UNWRITABLE"
    assert "[Errno 20]" in record["ranks"][0]["written"]["detail"]
    assert len({rank["digest"] for rank in record["ranks"]}) == 1


def test_an_unwritable_managed_store_is_tuned_in_memory(releases: Releases, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    record = releases(NEWEST).run(tmp_path / "file" / "cache").record
    assert record["tuned"] == 10
    assert record["ranks"][0]["written"]["reason"] == "UNWRITABLE"


def test_a_managed_store_that_takes_no_entry_is_not_said_to_be_written(releases: Releases, tmp_path: Path) -> None:
    """FlashInfer's own store never says that it could not write."""
    release = releases(NEWEST)
    store = Path(release.run(tmp_path).record["file"])
    shutil.rmtree(store / "v2")
    (store / "v2").write_text("no folder")
    record = release.run(tmp_path).record
    assert record["ranks"][0]["written"]["reason"] == "UNWRITABLE"
    assert "10 of 10 tuned entries are not in it" in record["warnings"][0]


def test_a_pipe_in_the_managed_store_stops_nobody(releases: Releases, tmp_path: Path) -> None:
    """FlashInfer opens whatever lies there, and would wait for the other end."""
    release = releases(NEWEST)
    release.run(tmp_path)
    entry = next(tmp_path.rglob("entries/*.json"))
    entry.unlink()
    os.mkfifo(entry)
    record = release.run(tmp_path).record
    assert (record["tuned"], record["warm"], record["why_cold"]) == (10, False, "UNREADABLE")
    assert entry.is_fifo()


def test_a_cache_root_of_another_user_is_tuned_in_memory(releases: Releases, tmp_path: Path) -> None:
    """A container that runs as another user, whose HOME is still root's; only root can try it."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    (tmp_path / "theirs").mkdir(mode=0o700)
    for version in ("0.6.13", NEWEST):
        record = releases(version).run(tmp_path / "theirs", fault="other-user").record
        assert record["tuned"] == 10
        assert "[Errno 13]" in record["ranks"][0]["written"]["detail"]


def test_broken_entries_of_the_managed_store_are_tuned_anew(releases: Releases, tmp_path: Path) -> None:
    release = releases(NEWEST)
    release.run(tmp_path)
    entries = sorted(tmp_path.rglob("entries/*.json"))
    entries[0].write_text("{")
    record = release.run(tmp_path).record
    assert (record["warm"], record["why_cold"], record["loaded"], record["tuned"]) == (False, "INCOMPLETE", 9, 1)
    assert release.run(tmp_path).record["warm"]


def test_a_path_with_spaces_and_other_letters_works(release: Release, tmp_path: Path) -> None:
    root = tmp_path / "kämel é 空 x"
    assert not release.run(root).record["warm"]
    assert release.run(root).record["warm"]


def test_locks_that_the_file_system_refuses_are_reported(release: Release, tmp_path: Path) -> None:
    record = release.run(tmp_path, fault="no-locks").record
    assert "No locks available" in record["ranks"][0]["written"]["lock"]
    assert any("written by rename alone" in warning for warning in record["warnings"])
    assert release.run(tmp_path).record["warm"]


NONSENSE = {
    "VLLM_DISABLE_FLASHINFER_AUTOTUNE_CACHE": ("perhaps", "the cache stays off"),
    "FLASHINFER_WARMUP_TIMEOUT_S": ("soon", "1200 is used"),
    "VLLM_FLASHINFER_AUTOTUNE_SKIP_OPS": ("no_such_gemm, ,", "no_such_gemm"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_in_the_environment_never_fails_a_start(release: Release, tmp_path: Path, name: str) -> None:
    value, answer = NONSENSE[name]
    record = release.run(tmp_path, environment={name: value}).record
    if name.endswith("SKIP_OPS"):
        assert record["skip_ops"] == ["no_such_gemm"]
        return
    assert any(name in warning and answer in warning for warning in record["warnings"])


@pytest.mark.parametrize("where", ["quant_method", "scheme"])
def test_the_slow_kernel_is_skipped_by_the_class_name_in_its_bases(
    release: Release, tmp_path: Path, where: str
) -> None:
    record = release.run(tmp_path, slow_kernel_on=[where]).record
    assert (record["skip_ops"], record["skip_source"], record["skip_passed"]) == (["fp4_gemm"], "model", True)


def test_skip_ops_are_never_passed_to_a_release_that_does_not_take_them(releases: Releases, tmp_path: Path) -> None:
    record = releases("0.6.12").run(tmp_path, environment={"VLLM_FLASHINFER_AUTOTUNE_SKIP_OPS": "host_gemm"}).record
    assert (record["skip_ops"], record["skip_passed"], record["tuned"]) == ([], False, 10)
    assert any("takes no skip_ops" in warning for warning in record["warnings"])


def test_skipping_is_passed_on_every_path(releases: Releases, tmp_path: Path) -> None:
    wish = {"VLLM_FLASHINFER_AUTOTUNE_SKIP_OPS": "host_gemm"}
    for version, ranks, spec in (
        ("0.6.13", 1, {"cache_off": True}),
        ("0.6.13", 1, {}),
        ("0.6.16", 2, {}),
        (NEWEST, 1, {}),
    ):
        record = releases(version).run(tmp_path, ranks=ranks, environment=wish, **spec).record
        assert record["tuned"] == 0, record["strategy"]
        passes = record["ranks"][0]["passes"]
        assert passes["tune"]["host_gemm"]["skipped"] == 2
        assert "complete" not in passes, "what is skipped misses afterwards, and asks for no further pass"


def test_a_rank_that_dies_inside_a_layers_sum_ends_the_others_too(release: Release, tmp_path: Path) -> None:
    ran = release.run(tmp_path, ranks=2, limit_s=45, fault="die-1:host_fp16")
    assert ran.statuses == [0, 9]
    assert ran.results[0]["error"] in {"RuntimeError", "DistBackendError"}


def test_an_uncovered_release_tunes_on_all_ranks_and_says_so(release: Release, tmp_path: Path) -> None:
    record = release.run(tmp_path, ranks=2, table=None, fault="uncovered").record
    assert (record["strategy"], record["persistent"]) == ("all_ranks", False)
    assert any("no row" in warning for warning in record["warnings"])
    assert list(tmp_path.rglob("*.json")) == []


def test_an_uncovered_release_is_refused_under_strict(release: Release, tmp_path: Path) -> None:
    refused = release.run(tmp_path, table=None, fault="uncovered", strict=True).results[0]
    assert (refused["error"], refused["reason"]) == ("RefusedError", "NO_ROW")


def test_a_row_that_promises_what_the_release_lacks_is_not_followed(releases: Releases, tmp_path: Path) -> None:
    """The row of 0.7.4 for 0.6.13: it promises a process group and a managed store."""
    wrong = {"table": str(releases(NEWEST).table)}
    record = releases("0.6.13").run(tmp_path, ranks=2, **wrong).record
    assert record["strategy"] == "all_ranks"
    assert any("set_autotune_process_group" in warning for warning in record["warnings"])
    refused = releases("0.6.13").run(tmp_path, ranks=2, strict=True, **wrong)
    assert {result["reason"] for result in refused.results} <= {"WRONG_ROW", "RANK_FAILED"}


def test_the_shipped_table_covers_the_release(release: Release, tmp_path: Path) -> None:
    record = release.run(tmp_path, table=None, strict=True).record
    assert (record["strategy"], record["rule"]) == ("leader_broadcast", 7)


def test_no_gpu_is_refused_under_strict(release: Release, tmp_path: Path) -> None:
    assert release.run(tmp_path, world=False, strict=True).results[0]["reason"] == "NO_GPU"


def _without(data: bytes, key: str) -> bytes:
    body = json.loads(data)
    del body[key]
    return json.dumps(body).encode()


def _with(data: bytes, **fields: str | None) -> bytes:
    body: dict[str, Any] = json.loads(data)
    for name, value in fields.items():
        if value is None:
            body["_metadata"].pop(name)
        else:
            body["_metadata"][name] = value
    return json.dumps(body).encode()
