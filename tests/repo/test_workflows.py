"""The workflows that people take: linted, pinned, with least permissions, and never green because a job was skipped."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.repo.commands import Found, read_with_its_parser, sessions, tooling_words
from tests.trees import write
from tooling.gate.matrix import KINDS

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FILES = [*WORKFLOWS, ROOT / ".github/actions/nox/action.yml"]
LINTER = Path(sysconfig.get_path("scripts"), "jactionlint")

VALUES = {
    "$BASE": "main", "$CHANNEL": "release", "$PLATFORM": "linux/amd64", "$TARGET": "release", "$VERSION": "0.7.4",
    "$TARGET.tags=$name": "release.tags=ghcr.io/owner/flashinfer-release:staging-1", "origin/$BASE": "origin/main",
    "$IMAGE": "ghcr.io/owner/flashinfer-release@sha256:" + "a" * 64, "$CONFIG": "configs/gsm8k/a.yaml",
    "$digest": "sha256:" + "a" * 64, "$COMMIT": "b" * 40,
}  # fmt: skip
ARRAYS = {
    "${accepted[@]}": ["--allow-downgrade"],
    "${flags[@]}": ["--drop-cubin", "--with-companions"],
    "${baseline[@]}": ["--baseline", "before/gsm8k-a.json"],
    "${words[@]}": [
        "--channel", "release", "--commit", "b" * 40, "--as-of", "2026-06-01T12:00:00Z", "--evidence", "evidence",
        "--before", "before",
    ],
}  # fmt: skip
"""What the scripts' own variables and arrays hold when a command is run."""


def load(path: Path) -> dict[str, Any]:
    body: dict[Any, Any] = yaml.safe_load(path.read_text())
    return {"on": body.pop(True, None), **body}  # YAML 1.1 reads the key `on` as true


def jobs(name: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = load(ROOT / f".github/workflows/{name}.yml")["jobs"]
    return found


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in FILES:
        body = load(path)
        for name, job in body.get("jobs", {"action": body.get("runs")}).items():
            yield from ((f"{path.name}: {name}", step) for step in job["steps"])


def lint(*paths: Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    words = [LINTER, "--strict-exit", "--no-hints", "--no-color", "--no-online", *paths]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_the_linter_finds_nothing() -> None:
    done = lint()
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ('-- "$VERSION"', '-- "${{ inputs.version }}"', "template-injection"),
        ("runs-on: ubuntu-24.04", "runs-on: ubuntu-1.04", "unknown-runner-label"),
        ("steps.gate.outputs", "steps.gatte.outputs", "undefined-property"),
        ("    timeout-minutes: 30\n", "    timeout-minutes: 30\n    needs: nobody\n", "undefined-job-needs"),
        (
            "uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1",
            "uses: actions/checkout@v7",
            "unpinned-uses",
        ),
        ("      contents: write # pushes the branch\n", "      content: write\n", "invalid-permissions"),
    ],
    ids=["injection", "no such runner", "no such step", "no such job", "a tag", "no such permission"],
)
def test_the_linter_sees_what_is_wrong(tmp_path: Path, before: str, after: str, rule: str) -> None:
    text = (ROOT / ".github/workflows/bump.yml").read_text()
    assert before in text
    (tmp_path / ".git").mkdir()  # the linter looks for the repository's top
    write(tmp_path, ".github/actions/nox/action.yml", (ROOT / ".github/actions/nox/action.yml").read_text())
    path = write(tmp_path, ".github/workflows/bump.yml", text)
    assert lint(cwd=tmp_path).returncode == 0
    write(tmp_path, ".github/workflows/bump.yml", text.replace(before, after, 1))
    done = lint(path, cwd=tmp_path)
    assert done.returncode == 1
    assert f"[{rule}]" in done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_starts_without_permissions_and_runs_once_at_a_time(path: Path) -> None:
    body = load(path)
    assert body["permissions"] == {}
    assert body["concurrency"]["group"]
    assert body["defaults"]["run"]["shell"] == "bash"
    assert not {"pull_request_target", "workflow_run", "issue_comment"} & set(body["on"])
    for name, job in body["jobs"].items():
        assert isinstance(job["timeout-minutes"], int), name
        assert set(job["permissions"].values()) <= {"read", "write"}, name


WRITES = {
    ("bump", "bump"): {"contents", "pull-requests"},
    ("prune", "prune"): {"packages"},
    ("release", "image"): {"packages"},
    ("release", "publish"): {"attestations", "id-token", "packages"},
}


def test_only_jobs_that_write_may_write() -> None:
    found = {
        (path.stem, name): {scope for scope, level in job["permissions"].items() if level == "write"}
        for path in WORKFLOWS
        for name, job in load(path)["jobs"].items()
    }
    assert {key: scopes for key, scopes in found.items() if scopes} == WRITES


def test_every_action_is_pinned_by_its_commit_and_says_its_version() -> None:
    used = [line for path in FILES for line in path.read_text().splitlines() if re.search(r"\buses:", line)]
    assert len(used) > 10
    for line in used:
        assert re.search(r"uses: (\./\.github/actions/nox$|[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$)", line), line


def test_an_action_has_one_version_everywhere() -> None:
    pinned: dict[str, set[str]] = {}
    for path in FILES:
        for name, commit in re.findall(r"uses: ([\w/-]+)@(\S+)", path.read_text()):
            pinned.setdefault(name, set()).add(commit)
    assert {name: len(commits) for name, commits in pinned.items()} == dict.fromkeys(pinned, 1)


def test_no_expression_stands_in_a_script() -> None:
    for where, step in steps():
        assert "${{" not in step.get("run", ""), f"{where}: pass it by env"


def test_no_checkout_leaves_credentials_behind() -> None:
    for where, step in steps():
        if "checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False, where


def test_no_step_is_allowed_to_fail_and_no_job_but_that_of_an_image_that_only_informs() -> None:
    for where, step in steps():
        assert "continue-on-error" not in step, where
    allowed = {
        (path.stem, name): job["continue-on-error"]
        for path in WORKFLOWS
        for name, job in load(path)["jobs"].items()
        if "continue-on-error" in job
    }
    assert allowed == {("release", "image"): "${{ !matrix.required }}"}


def test_a_pull_request_s_code_reaches_no_runner_of_one_s_own_no_secret_and_may_write_nothing() -> None:
    for path in WORKFLOWS:
        body = load(path)
        if set(body["on"]) <= {"workflow_dispatch", "schedule"}:
            continue
        assert "secrets." not in path.read_text(), path.name
        for name, job in body["jobs"].items():
            assert re.fullmatch(r"ubuntu-\d+\.\d+(-arm)?", job["runs-on"]), f"{path.name}: {name}"
            assert set(job["permissions"].values()) <= {"read"}, f"{path.name}: {name}"


def test_images_are_published_after_the_gate_passed_and_was_signed_and_not_otherwise() -> None:
    publish = jobs("release")["publish"]
    assert set(publish["needs"]) == {"plan", "gate"}
    terms = publish["if"].removeprefix("${{ ").removesuffix(" }}").split(" && ")
    assert terms == ["!cancelled()", "needs.plan.result == 'success'", "needs.gate.result == 'success'"]
    names = [step.get("name") or step.get("uses", "") for step in publish["steps"]]
    verified = next(
        number for number, step in enumerate(publish["steps"]) if "verify-attestation" in step.get("run", "")
    )
    published = next(
        number for number, step in enumerate(publish["steps"]) if "imagetools create" in step.get("run", "")
    )
    signed = next(number for number, step in enumerate(publish["steps"]) if "actions/attest@" in step.get("uses", ""))
    assert verified < signed < published, names


def test_who_may_publish_is_for_the_rules_of_an_environment() -> None:
    assert {name: job.get("environment") for name, job in jobs("release").items() if "environment" in job} == {
        "publish": "${{ inputs.channel }}"
    }


@pytest.mark.parametrize("name", [path.stem for path in WORKFLOWS])
def test_a_job_behind_one_that_may_be_skipped_says_itself_when_it_runs(name: str) -> None:
    """GitHub puts success() before a condition without a status function, and that is false if any ancestor was skipped."""
    found = jobs(name)

    def ancestors(job: str) -> set[str]:
        needs = found[job].get("needs", [])
        direct = {needs} if isinstance(needs, str) else set(needs)
        return direct.union(*(ancestors(other) for other in direct))

    for job, body in found.items():
        if any("if" in found[other] for other in ancestors(job)):
            assert re.search(r"\b(always|cancelled)\(\)", body["if"]), job


def test_nothing_else_names_an_image_for_others() -> None:
    for name, job in jobs("release").items():
        for step in job["steps"]:
            if "--push" in step.get("run", "").split():
                assert ":staging-$GITHUB_RUN_ID" in step["run"]
            if name != "publish":
                assert "imagetools create" not in step.get("run", "")


def test_the_gate_runs_whatever_became_of_the_stages() -> None:
    release = jobs("release")
    gate = release["gate"]
    assert gate["if"] == "always()"
    stages = {name for name, job in release.items() if "if" in job and name not in {"gate", "publish"}}
    assert stages == {"image", "smoke", "gsm8k"} == set(gate["needs"])
    (judge,) = (step for step in gate["steps"] if "nox -s gate" in step.get("run", ""))
    assert "if" not in judge
    assert 'exit "$code"' in judge["run"]


def test_a_skipped_job_of_a_pull_request_is_not_a_passed_one() -> None:
    found = jobs("pull-request")
    last = found.pop("everything")
    assert last["if"] == "always()"
    assert set(last["needs"]) == set(found)
    assert not any("if" in job for job in found.values())


@pytest.mark.parametrize(
    ("results", "code"),
    [("success success", 0), ("success skipped", 1), ("failure success", 1), ("cancelled", 1)],
    ids=["all", "skipped", "failed", "cancelled"],
)
def test_everything_passed_only_where_each_job_has_run_and_passed(results: str, code: int) -> None:
    script = jobs("pull-request")["everything"]["steps"][0]["run"]
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(words, env={"RESULTS": results, "PATH": "/usr/bin:/bin"}, capture_output=True, check=False)
    assert done.returncode == code


def test_evidence_of_every_stage_reaches_the_gate_also_when_the_stage_fails() -> None:
    for name, job in jobs("release").items():
        uploads = [step for step in job["steps"] if "upload-artifact@" in step.get("uses", "")]
        for step in uploads:
            assert step["if"] == "always()", name
            assert step["with"]["if-no-files-found"] == "error", name
            assert step["with"]["overwrite"] is True, f"{name}: it cannot be run again"
            assert step["with"]["retention-days"] == 90, name
        if name in {"plan", "image", "smoke", "gsm8k"}:
            (evidence,) = uploads
            assert evidence["with"]["name"].startswith("evidence-")


def test_artifacts_have_names_of_their_own_and_evidence_lands_in_one_folder_that_the_gate_reads() -> None:
    names = []
    for name, job in jobs("release").items():
        for step in job["steps"]:
            settings = step.get("with", {})
            if "upload-artifact@" in step.get("uses", ""):
                names.append(settings["name"])
                assert ("matrix" not in job.get("strategy", {})) or "${{ matrix.name }}" in settings["name"], name
            if "download-artifact@" in step.get("uses", "") and "pattern" in settings:
                assert settings["merge-multiple"] is True, name  # the gate does not look into folders below
                assert settings["path"] in {"evidence", "before", "proved"}, name
    plans = [name for name in names if "matrix.name" in name]
    assert len(names) - len(plans) == len(set(names) - set(plans))
    assert sorted(plans) == ["evidence-${{ matrix.name }}"] * 2 + ["evidence-image-${{ matrix.name }}"]


def test_outputs_of_the_plan_are_the_matrices_that_the_command_has() -> None:
    assert set(jobs("release")["plan"]["outputs"]) == set(KINDS)
    for name in ("image", "smoke", "gsm8k", "publish"):
        used = re.search(r"outputs\.(\w+)", jobs("release")[name]["strategy"]["matrix"])
        assert used is not None
        assert used[1] in KINDS


def commands() -> list[Found]:
    """Every `nox` and `tooling` command of the scripts, continued lines joined and variables filled in."""
    found = []
    for where, step in steps():
        script = step.get("run", "").replace("\\\n", " ")
        for line in script.splitlines():
            match = re.match(r"\s*((?:nox -s|tooling|python -m tooling) [^|;>]*)", line)
            if match:
                words = [filled for word in match[1].split() for filled in _filled(word.strip('"'))]
                found.append(Found(where, tuple(words)))
    return found


def _filled(word: str) -> list[str]:
    return ARRAYS[word] if word in ARRAYS else [VALUES.get(word, word)]


@pytest.mark.parametrize("command", commands(), ids=lambda command: f"{command.where}: {command.text[:40]}")
def test_every_command_exists_and_its_own_parser_takes_its_words(command: Found) -> None:
    assert not [word for word in command.words if "$" in word], "say in VALUES or ARRAYS what it holds"
    assert command.words[2] in sessions()
    asked = tooling_words(command.words)
    if asked is not None:
        read_with_its_parser(*asked)


def test_commands_are_found_in_every_workflow() -> None:
    assert {command.where.partition(".yml")[0] for command in commands()} == {path.stem for path in WORKFLOWS}
    assert {command.words[2] for command in commands()} >= {
        "check",
        "bump",
        "image",
        "smoke",
        "gsm8k",
        "gate",
        "matrix",
    }
