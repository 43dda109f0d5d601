"""The words of a container's command, and its answer read back."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tooling.commands.report import Report, render_json
from tooling.edges.smoke_start import NEEDED, OLDEST
from tooling.errors import EdgeError, ExitCode, InputError, ToolingError
from tooling.findings import Finding
from tooling.smoke.container_plan import EVIDENCE, JIT, START, TREE, find_manifest_digest, parse_answer, plan_command

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_runs_the_smoke_on_what_was_brought_in() -> None:
    words = plan_command("python3", ["--scenario", "one-rank"], jit_image=DIGEST)
    assert words[:3] == ["python3", START, "smoke"]
    assert words[-2:] == ["--scenario", "one-rank"]
    for name, value in (("--root", TREE), ("--evidence", EVIDENCE), ("--jit-cache", JIT), ("--jit-image", DIGEST)):
        assert words[words.index(name) + 1] == value


def test_without_a_jit_cache_none_is_named() -> None:
    assert "--jit-cache" not in plan_command("python", [], jit_image=None)


def test_the_start_is_a_file_of_this_package() -> None:
    assert (ROOT / START.split("/source/")[1]).is_file()


def test_the_start_asks_for_the_python_and_packages_that_the_tool_needs() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert wanted == ">=" + ".".join(map(str, OLDEST))
    assert set(NEEDED) == {"packaging", "torch", "flashinfer"}


@pytest.mark.parametrize(
    ("error", "family"),
    [
        (InputError("no such scenario", hint="see", reason="UNKNOWN_SCENARIO"), InputError),
        (EdgeError("no GPU", reason="NO_GPU"), EdgeError),
        (ToolingError("a bug", reason="CRASH"), ToolingError),
    ],
    ids=["input", "edge", "crash"],
)
def test_a_commands_own_json_is_read_back(error: ToolingError, family: type[ToolingError]) -> None:
    finding = Finding(check="smoke", detail="one entry was lost", reason="LOST")
    report = Report(command="smoke", status="not-run", exit_code=ExitCode.WORLD, findings=(finding,), error=error,
                    fields={"records": [], "story": "long"})  # fmt: skip
    answer = parse_answer(render_json(report).encode())
    assert answer is not None
    assert type(answer.error) is family
    assert (answer.error.reason, answer.error.hint) == (error.reason, error.hint)
    assert "in the container: " in answer.error.message
    assert (answer.status, answer.exit_code, answer.fields) == ("not-run", 3, {"records": [], "story": "long"})
    assert [Finding.from_json(one) for one in answer.findings] == [finding]


def test_an_error_names_the_folder_of_kernels_where_it_lies_outside() -> None:
    error = InputError(f"{JIT}: its kernels were compiled for another environment", reason="JIT_CACHE_FOREIGN")
    report = Report(command="smoke", status="error", exit_code=ExitCode.INPUT, error=error)
    answer = parse_answer(render_json(report).encode(), jit_folder="/home/me/kernels")
    assert answer is not None
    assert answer.error is not None
    assert answer.error.message.startswith("in the container: /home/me/kernels: its kernels")


def test_what_the_image_lacks_is_an_answer_too() -> None:
    answer = parse_answer(json.dumps({"lacks": "python>=3.11", "found": "3.8.10"}).encode())
    assert answer is not None
    assert (answer.lacks, answer.found) == ("python>=3.11", "3.8.10")


@pytest.mark.parametrize(
    "stdout",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"null",
        b'{"status": "pass"}',
        b"\xff",
        b'{"status":"","exit":99,"findings":[],"error":null}',
    ],
)
def test_what_is_no_answer_is_none(stdout: bytes) -> None:
    assert parse_answer(stdout) is None


DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64


@pytest.mark.parametrize(
    ("tag", "digests", "found"),
    [
        ("team/pin:1", [], None),
        ("team/pin:1", [f"mirror/pin@{OTHER}", f"team/pin@{DIGEST}"], DIGEST),
        ("host:5000/pin", [f"mirror/pin@{OTHER}", f"host:5000/pin@{DIGEST}"], DIGEST),
        (f"team/pin@{DIGEST}", [f"mirror/pin@{OTHER}", f"team/pin@{DIGEST}"], DIGEST),
        (f"sha256:{'c' * 64}", [f"mirror/pin@{OTHER}"], OTHER),
    ],
    ids=["never pushed", "by tag", "registry with a port", "by digest", "by id"],
)
def test_the_manifest_is_that_of_the_tags_own_repository(tag: str, digests: list[str], found: str | None) -> None:
    assert find_manifest_digest(tag, digests) == found
