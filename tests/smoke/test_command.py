"""`tooling smoke` as it is typed: machines that cannot run it, broken installations, bad arguments, and `--explain`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tooling.cli import main
from tooling.commands import smoke_running
from tooling.edges.capability_table import load_table
from tooling.edges.smoke import process
from tooling.evidence import Record, parse_record, render_record
from tooling.smoke.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "tests" / "data" / "smoke" / "h200-0.6.13.json"

TORCH = """
class version: cuda = {cuda!r}
class cuda:
    is_available = staticmethod(lambda: {count} > 0)
    device_count = staticmethod(lambda: {count})
    get_device_name = staticmethod(lambda number: "NVIDIA H200")
    get_device_capability = staticmethod(lambda number: (9, 0))
    init = staticmethod(lambda: None)
"""

Smoke = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "a tree ü"
    (made / "requirements").mkdir(parents=True)
    (made / "versions.json").write_text('{"variable": {"FLASHINFER_VERSION": {"default": "0.6.13"}}}\n')
    (made / "requirements" / "cuda.txt").write_text("flashinfer-python==0.6.13\n")
    return made


@pytest.fixture
def smoke(tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Smoke:
    """The exit code and the JSON object of a call."""
    monkeypatch.delenv("PYTHONPATH", raising=False)

    def call(*words: str) -> tuple[int, dict[str, Any]]:
        code = main(["smoke", "--json", "--root", str(tree), *words])
        return code, json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs a torch and a FlashInfer, made of those words, for every process that is started."""

    def install(*, cuda: str | None = "13.0", count: int = 1, flashinfer: str | None = "") -> None:
        site = tmp_path / "site packages"
        sources = {"torch": TORCH.format(cuda=cuda, count=count), "flashinfer": flashinfer}
        for name, version in (("torch", "2.11.0"), ("flashinfer_python", "0.6.13")):
            source = sources[name.removesuffix("_python")]
            if source is not None:
                info = site / f"{name}-{version}.dist-info"
                info.mkdir(parents=True)
                (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
                (site / f"{name.removesuffix('_python')}.py").write_text(source)
        monkeypatch.setenv("PYTHONPATH", str(site))

    return install


def test_without_torch_it_is_not_run(smoke: Smoke, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tree.parent / "blocked"
    blocked.mkdir()
    (blocked / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
    monkeypatch.setenv("PYTHONPATH", str(blocked))
    code, body = smoke()
    assert (code, body["records"][0]["status"], body["records"][0]["reason"]) == (3, "not-run", "NO_TORCH")
    assert "No module named 'torch'" in body["error"]["message"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [({"cuda": None, "count": 0}, "NO_GPU"), ({"count": 0}, "NO_GPU"), ({"flashinfer": None}, "NO_FLASHINFER")],
    ids=["torch without CUDA", "no device", "no FlashInfer"],
)
def test_a_machine_that_lacks_something_is_told_apart(
    smoke: Smoke, packages: Callable[..., None], given: dict[str, Any], reason: str
) -> None:
    packages(**given)
    code, body = smoke()
    assert (code, body["records"][0]["status"], body["records"][0]["reason"]) == (3, "not-run", reason)


def test_what_packages_print_when_they_are_imported_and_at_the_end_is_no_obstacle(
    smoke: Smoke, packages: Callable[..., None]
) -> None:
    """A line of bytes that are no text, one that is JSON, and words after all."""
    loud = "import atexit, os\nos.write(1, b'\\xff\\n{}\\n')\natexit.register(os.write, 1, b'[1]\\nbye\\n')"
    packages(count=0, flashinfer=loud)
    code, body = smoke()
    assert (code, body["records"][0]["reason"]) == (3, "NO_GPU")


def test_a_flashinfer_that_cannot_be_imported_fails_with_its_words_and_starts_no_worker(
    smoke: Smoke, packages: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    packages(flashinfer="raise RuntimeError('flashinfer-cubin version (0.6.12) does not match')")
    monkeypatch.setattr(process.Worker, "__init__", lambda *_, **__: pytest.fail("a worker was started"))
    code, body = smoke()
    record = body["records"][0]
    assert (code, record["status"], record["reason"]) == (4, "fail", "FLASHINFER_BROKEN")
    assert "flashinfer-cubin version (0.6.12) does not match" in record["findings"][0]["detail"]
    assert [one["not_run"] for one in record["measurements"]["scenarios"]] == [
        "FlashInfer cannot be imported" for _ in SCENARIOS
    ]


@pytest.mark.parametrize(
    ("words", "reason", "told"),
    [
        (["--device", "1"], "UNKNOWN_DEVICE", "--device 1: there is no such GPU"),
        (["--device", "-1"], "UNKNOWN_DEVICE", "--device -1"),
        (["--ranks", "3"], "WORLD_TOO_LARGE", "3 ranks: a world larger than the 1 GPU"),
        (["--ranks", "0"], "BAD_ARGUMENTS", "--ranks 0: expected 2 to 1024"),
        (["--max-tokens", "3"], "BAD_ARGUMENTS", "--max-tokens 3"),
        (["--max-tokens", "1000000000"], "BAD_ARGUMENTS", "--max-tokens 1000000000: expected 4 to 8192"),
        (["--no-progress-s", "0.5"], "BAD_ARGUMENTS", "--no-progress-s 0.5: expected 1 to 86400"),
        (["--no-progress-s", "nan"], "BAD_ARGUMENTS", "--no-progress-s nan"),
        (["--scenario-timeout-s", "inf"], "BAD_ARGUMENTS", "--scenario-timeout-s inf"),
        (["--scenario", "one-rnk"], "UNKNOWN_SCENARIO", "'one-rnk'"),
        (["--scenario"], "BAD_ARGUMENTS", "at least one argument"),
        (["--jit-image", "sha256:1"], "BAD_ARGUMENTS", "--jit-image goes with --jit-cache"),
        (["--network", "host"], "BAD_ARGUMENTS", "--network goes with --image"),
        (["--image", "no such"], "BAD_ARGUMENTS", "no image can have that name"),
    ],
)
def test_a_bad_argument_is_refused_before_anything_runs(
    smoke: Smoke, packages: Callable[..., None], tree: Path, words: list[str], reason: str, told: str
) -> None:
    packages()
    code, body = smoke(*words)
    assert (code, body["error"]["kind"]) == (2, "input")
    assert told in body["error"]["message"]
    assert body["error"].get("reason", reason) == reason
    assert list((tree / "evidence").glob("*.json") if (tree / "evidence").exists() else ()) == []


@pytest.mark.parametrize("there", ["a file", "below a file", "no file system"])
def test_an_evidence_folder_that_cannot_be_written_is_told_before_anything_runs(
    smoke: Smoke, tmp_path: Path, there: str
) -> None:
    (tmp_path / "file").touch()
    folder = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "x", "no file system": Path("/proc/x")}
    code, body = smoke("--evidence", str(folder[there]))
    assert code == 3
    assert "the record cannot be written" in body["error"]["message"]


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe", b"[]", b'{"variable": 3}'])
def test_broken_pins_are_bad_input(smoke: Smoke, tree: Path, data: bytes) -> None:
    (tree / "versions.json").write_bytes(data)
    code, body = smoke()
    assert code == 2
    assert "versions.json" in body["error"]["message"]


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"rows": []}', b"\xff", None])
def test_a_broken_table_is_bad_input(
    smoke: Smoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: bytes | None
) -> None:
    path = tmp_path / "capabilities.json"
    if data is not None:
        path.write_bytes(data)
    monkeypatch.setattr(smoke_running, "load_table", lambda: load_table(path))
    code, body = smoke()
    assert code == 2
    assert "capabilities.json" in body["error"]["message"]


def test_a_launchers_world_without_torch_is_no_crash(smoke: Smoke, monkeypatch: pytest.MonkeyPatch) -> None:
    place = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    for name, value in {**place, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "torch.distributed", None)
    code, body = smoke()
    assert code == 3
    assert "torch cannot be imported" in body["error"]["message"]


def test_without_a_place_for_temporary_files_it_says_so_and_records_it(
    smoke: Smoke, packages: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    packages(flashinfer="")
    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    code, body = smoke()
    assert (code, body["records"][0]["status"], body["records"][0]["reason"]) == (3, "not-run", "NO_SCRATCH")


def test_a_disk_that_fills_up_in_the_middle_is_no_crash(
    smoke: Smoke, packages: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    packages(flashinfer="")
    monkeypatch.setattr(process.Worker, "__init__", full)
    code, body = smoke("--scenario", "one-rank")
    assert (code, body["records"][0]["status"], body["records"][0]["reason"]) == (3, "not-run", "NO_DISK")
    assert [one["not_run"] for one in body["records"][0]["measurements"]["scenarios"]] == ["the run could not go on"]


@pytest.mark.parametrize("where", ["subprocess.run", "tooling.edges.smoke.process.Worker.__init__"])
def test_where_no_process_can_be_started_that_is_told(
    smoke: Smoke, packages: Callable[..., None], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Containers have a limit for processes; git is asked before."""
    packages(flashinfer="")
    real = subprocess.run

    def refuse(*words: Any, **options: Any) -> Any:
        if where == "subprocess.run" and "tooling.edges.smoke.machine" not in words[0]:
            return real(*words, **options)
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(where, refuse)
    code, body = smoke("--scenario", "one-rank")
    assert (code, body["records"][0]["status"], body["records"][0]["reason"]) == (3, "not-run", "NO_PROCESS")
    assert "Resource temporarily unavailable" in body["error"]["message"]


@pytest.mark.parametrize("streams", ["", "<&-", "<&- >&-"], ids=["open", "no stdin", "neither"])
def test_a_bare_surrounding_is_no_obstacle(tree: Path, packages: Callable[..., None], streams: str) -> None:
    """No home, the C locale, closed streams, a folder with spaces and letters that are no ASCII."""
    packages(count=0)
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m tooling smoke --root "$1" {streams}', sys.executable, str(tree)],
        env={
            "PATH": os.environ["PATH"], "LC_ALL": "C", "FLASHINFER_CUDA_ARCH_LIST": "garbage", "FLASHINFER_NEW": "\n",
            "PYTHONPATH": f"{os.environ['PYTHONPATH']}{os.pathsep}{ROOT}",
        },
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "there is no GPU" in done.stderr
    record = json.loads((tree / "evidence" / "smoke-none.json").read_text())
    assert record["measurements"]["bypasses"] == {"FLASHINFER_NEW": "\n"}
    assert record["measurements"]["overrides"] == {"FLASHINFER_CUDA_ARCH_LIST": "garbage"}


@pytest.mark.parametrize("streams", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-"], ids=["no stderr", "no output", "nothing"])
def test_closed_streams_are_no_obstacle_where_scenarios_run(
    tree: Path, packages: Callable[..., None], streams: str
) -> None:
    packages()
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m tooling smoke --root "$1" --scenario one-rank {streams}', sys.executable, str(tree)],
        env={
            "PATH": os.environ["PATH"], "HOME": str(tree),
            "PYTHONPATH": f"{os.environ['PYTHONPATH']}{os.pathsep}{ROOT}",
        },
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 4
    assert json.loads((tree / "evidence" / "smoke-sm90.json").read_text())["status"] == "fail"


def test_a_folder_that_was_removed_under_us_is_bad_input(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'cd "$1" && rmdir "$1" && exec "$0" -m tooling smoke', sys.executable, str(gone)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "--root .: No such file or directory" in done.stderr


def test_the_story_of_a_record_is_told_and_its_own_bytes_are_the_json(smoke: Smoke) -> None:
    code, body = smoke("--explain", str(RECORD))
    assert (code, body["status"]) == (0, "pass")
    assert body["records"] == [json.loads(RECORD.read_text())]


def other_stage() -> str:
    record = parse_record(RECORD.read_text())
    fields = {name: getattr(record, name) for name in Record.__slots__}
    return render_record(Record(**{**fields, "stage": "gsm8k"}))


BAD_RECORDS: dict[str, tuple[Callable[[], bytes], str]] = {
    "garbage": (lambda: b"hello\n", "the record is not JSON"),
    "empty": (lambda: b"", "the record is not JSON"),
    "binary": (lambda: b"\x7fELF\xff\xfe", "byte 4 of the record is not UTF-8"),
    "nested": (lambda: b"[" * 200_000, "the record is not JSON"),
    "hand-edited": (lambda: RECORD.read_bytes().replace(b'"pass"', b'"fail"', 1), "does not match its own digest"),
    "of another stage": (lambda: other_stage().encode(), "this is a record of gsm8k, not of smoke"),
}


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_a_file_that_is_no_smoke_record_is_bad_input_and_named(smoke: Smoke, tmp_path: Path, name: str) -> None:
    make, told = BAD_RECORDS[name]
    path = tmp_path / "record.json"
    path.write_bytes(make())
    code, body = smoke("--explain", str(path))
    assert code == 2
    assert body["error"]["message"].startswith(f"{path}: ")
    assert told in body["error"]["message"]


def test_a_huge_file_a_pipe_and_a_device_are_not_read_as_records(smoke: Smoke, tmp_path: Path) -> None:
    huge, pipe = tmp_path / "huge.json", tmp_path / "pipe.json"
    huge.touch()
    os.truncate(huge, 100_000_000_000)
    os.mkfifo(pipe)
    for path, told in ((huge, "no stage writes more"), (pipe, "pipe"), (Path("/dev/zero"), "device"), (tmp_path, "")):
        code, body = smoke("--explain", str(path))
        assert code == 2
        assert told in body["error"]["message"]
