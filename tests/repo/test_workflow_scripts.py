"""The workflows' scripts, run by bash as GitHub runs them, with a `nox`, `docker`, `gh`, `git` that say what they were asked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.trees import commit_all, write

ROOT = Path(__file__).resolve().parents[2]
DIGEST = "sha256:" + "d" * 64

RECORDER = """\
#!/usr/bin/env bash
printf '%s\\n' "$(basename "$0") $*" >> "$ASKED"
[ "$1" != login ] || cat > /dev/null
case "$*" in
    *"--method DELETE"*) ;;
    *runs?created*) cat "$RUNS" || exit 1 ;;
    "api users/"*) echo "$KIND" ;;
    *versions?per_page*) printf '%s\\n' "$SAID" >&2; [ -z "$SAID" ] || exit 1; cat "$VERSIONS" ;;
    *ls-remote*) printf '%s' "$FOUND" ;;
    *inspect*) echo "$INSPECTED" ;;
    *"--markdown verdict/gate.md"*) echo "the verdict" > verdict/gate.md ;;
    *"--markdown gate.md"*) echo "the verdict" > gate.md ;;
esac
[ "$(basename "$0") $1" != "gh pr" ] || exit "${PR_CODE:-0}"
code=NOX_CODE_${2//-/_}
[ "$(basename "$0")" != nox ] || exit "${!code:-0}"
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a script ended: exit code, what its programs were asked, its outputs, its summary."""

    code: int
    asked: list[str]
    outputs: dict[str, str]
    summary: str


def script(workflow: str, job: str, holding: str) -> str:
    """The one script of that job that holds the text."""
    (found,) = (step["run"] for step in steps(workflow, job) if holding in step.get("run", ""))
    return str(found)


def steps(workflow: str, job: str) -> list[dict[str, Any]]:
    read = yaml.safe_load((ROOT / f".github/workflows/{workflow}.yml").read_text())
    found: list[dict[str, Any]] = read["jobs"][job]["steps"]
    return found


def steps_behind(workflow: str, holding: str) -> list[dict[str, Any]]:
    """The steps of the job of the workflow's name that come after the one that holds the text."""
    found = steps(workflow, workflow)
    (at,) = (number for number, step in enumerate(found) if holding in step.get("run", ""))
    return found[at + 1 :]


@pytest.fixture
def bash(tmp_path: Path) -> Any:
    programs = tmp_path / "programs"
    work = tmp_path / "work"
    work.mkdir()

    def run(text: str, *, real: tuple[str, ...] = (), **environment: str) -> Ran:
        for name in {"nox", "docker", "gh", "git"}.difference(real):
            write(programs, name, RECORDER).chmod(0o755)
        files = {name: tmp_path / name.lower() for name in ("ASKED", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        environ = {
            **{name: os.fspath(path) for name, path in files.items()}, "PATH": f"{programs}:{os.environ['PATH']}",
            "REGISTRY": "ghcr.io", "GITHUB_REPOSITORY_OWNER": "Some-Owner", "GITHUB_RUN_ID": "77",
            "GITHUB_ACTOR": "somebody", "INSPECTED": DIGEST, "GITHUB_SERVER_URL": "https://github.com", **environment,
        }  # fmt: skip
        path = write(tmp_path, "script.sh", text)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", path],
            cwd=work, env=environ, capture_output=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        read = {name: path.read_text() if path.exists() else "" for name, path in files.items()}
        outputs = dict(line.split("=", 1) for line in read["GITHUB_OUTPUT"].splitlines())
        return Ran(done.returncode, read["ASKED"].splitlines(), outputs, read["GITHUB_STEP_SUMMARY"])

    return run


def record(tmp_path: Path, folder: str) -> None:
    write(tmp_path / "work", f"{folder}/image-release.json", json.dumps({"manifest_digest": DIGEST}))


@pytest.mark.parametrize("code", [2, 4, 5], ids=["bad input", "FAIL", "INCOMPLETE"])
def test_a_release_that_does_not_pass_ends_red_is_shown_and_is_not_attested(bash: Any, code: int) -> None:
    ran = bash(script("release", "gate", "nox -s gate"), CHANNEL="release", COMMIT="c", NOX_CODE_gate=str(code))
    assert ran.code == code
    assert len(ran.asked) == 1
    assert "--attest" not in ran.asked[0]
    assert ran.summary == "the verdict\n"


def test_a_release_that_passes_is_attested_at_the_moment_of_its_verdict(bash: Any, tmp_path: Path) -> None:
    (tmp_path / "work/before").mkdir()
    ran = bash(script("release", "gate", "nox -s gate"), CHANNEL="release", COMMIT="c")
    assert ran.code == 0
    judged, attested = (line.split() for line in ran.asked)
    assert attested[-2:] == ["--attest", "verdict/gate.intoto.json"]
    assert judged[: len(attested) - 2] == attested[:-2]
    assert attested[-4:-2] == ["--before", "before"]


@pytest.mark.parametrize("code", [0, 4, 5])
def test_a_pull_request_ends_as_the_gate_does(bash: Any, code: int) -> None:
    ran = bash(script("pull-request", "check", "nox -s gate"), NOX_CODE_gate=str(code))
    assert (ran.code, ran.summary) == (code, "the verdict\n")


@pytest.mark.parametrize(("code", "ends"), [(0, 0), (4, 0), (5, 0), (2, 2), (3, 3)])
def test_a_bump_is_shown_whatever_the_gate_says_of_it_unless_the_gate_could_not_judge(
    bash: Any, code: int, ends: int
) -> None:
    ran = bash(script("bump", "bump", "nox -s gate"), NOX_CODE_gate=str(code), NOX_CODE_check="4")
    assert ran.code == ends
    assert ran.outputs == ({"code": str(code)} if ends == 0 else {})


@pytest.mark.parametrize("code", [0, 4, 5])
def test_the_bump_ends_as_the_gate_did(bash: Any, code: int) -> None:
    assert bash(script("bump", "bump", 'exit "$CODE"').splitlines()[-1], CODE=str(code)).code == code


@pytest.mark.parametrize(
    ("flags", "words"),
    [("none", []), ("--drop-cubin --with-companions", ["--drop-cubin", "--with-companions"])],
    ids=["none", "two"],
)
def test_a_version_is_one_word_whatever_is_typed(bash: Any, flags: str, words: list[str]) -> None:
    ran = bash(script("bump", "bump", "nox -s bump"), VERSION="0.7.4; touch owned $(touch owned)", FLAGS=flags)
    assert ran.asked == [" ".join(["nox -s bump -- 0.7.4; touch owned $(touch owned)", *words])]
    assert ran.code == 0


BUMP = {"VERSION": "0.7.4", "GH_TOKEN": "t0ken", "REPOSITORY": "o/n", "BASE": "main"}


@pytest.mark.parametrize(
    ("version", "found", "code"),
    [
        ("0.7.4", "", 0), ("v0.6.16.POST3", "", 0), ("0.7.4", "abc\trefs/heads/bump/flashinfer-0.7.4", 4),
        ("--root=/", "", 2), ("0.7.4 --drop-cubin", "", 2), ("0.7.4\nx", "", 2), ("$(touch owned)", "", 2), ("", "", 2),
    ],
    ids=["free", "another spelling", "somebody is at it", "an option", "two words", "two lines", "a command", "nothing"],
)  # fmt: skip
def test_a_bump_begins_only_with_a_version_that_nobody_is_at(
    bash: Any, tmp_path: Path, version: str, found: str, code: int
) -> None:
    ran = bash(script("bump", "bump", "ls-remote"), **{**BUMP, "VERSION": version, "FOUND": found})
    assert ran.code == code
    assert bool(ran.asked) == (code != 2)
    assert not (tmp_path / "work/owned").exists()


@pytest.mark.parametrize("moved", [True, False])
def test_a_bump_to_where_the_pins_are_ends_green_and_opens_nothing(bash: Any, tmp_path: Path, *, moved: bool) -> None:
    work = tmp_path / "work"
    write(work, "versions.json", "old")
    commit_all(work, "before")
    write(work, "versions.json", "new" if moved else "old")
    ran = bash(script("bump", "bump", "git commit"), real=("git",), **BUMP)
    assert (ran.code, ran.outputs) == (0, {"moved": "yes" if moved else "no"})
    assert ("already" in ran.summary) is not moved
    later = [step for step in steps_behind("bump", "git commit") if "run" in step]
    assert len(later) == 3
    assert all(step["if"] == "steps.commit.outputs.moved == 'yes'" for step in later)


@pytest.mark.parametrize("lines", [3, 30_000])
def test_a_pull_request_s_text_is_never_longer_than_github_takes(bash: Any, tmp_path: Path, lines: int) -> None:
    write(tmp_path / "work", "gate.md", "| a finding at … |\n" * lines)
    ran = bash(script("bump", "bump", "gh pr create"), **BUMP)
    assert ran.code == 0
    body = (tmp_path / "work/body.md").read_text()
    assert len(body) < 65_536
    assert body.startswith("| a finding at … |\n" * 3)
    assert ("The whole is the summary of https://github.com/o/n/actions/runs/77" in body) == (lines > 3)
    pushed, opened = ran.asked
    assert pushed.startswith("git push https://x-access-token:t0ken@github.com/o/n.git HEAD:refs/heads/bump/")
    assert opened.endswith("--body-file body.md")


def test_a_pull_request_that_github_refuses_leaves_no_branch_in_the_way_of_the_next(bash: Any, tmp_path: Path) -> None:
    write(tmp_path / "work", "gate.md", "x\n")
    ran = bash(script("bump", "bump", "gh pr create"), PR_CODE="1", **BUMP)
    assert ran.code == 3
    assert (
        ran.asked[-1]
        == "git push https://x-access-token:t0ken@github.com/o/n.git --delete refs/heads/bump/flashinfer-0.7.4"
    )


@pytest.mark.parametrize(("label", "words"), [("true", " --allow-downgrade"), ("false", "")])
def test_a_pull_request_lowers_the_pin_only_under_a_label(bash: Any, label: str, words: str) -> None:
    ran = bash(script("pull-request", "check", "nox -s check"), BASE="main", DOWNGRADE=label)
    assert ran.asked == [f"nox -s check -- --base origin/main{words}"]


def test_an_image_is_pushed_under_a_name_of_this_run(bash: Any) -> None:
    ran = bash(script("release", "image", "nox -s image"), TARGET="release", PLATFORM="linux/amd64")
    name = "ghcr.io/some-owner/flashinfer-release:staging-77"
    assert ran.asked == [f"nox -s image -- release --platform linux/amd64 --set release.tags={name} --push"]


@pytest.mark.parametrize("job", ["smoke", "gsm8k"])
def test_the_image_is_taken_by_the_digest_in_its_record(bash: Any, tmp_path: Path, job: str) -> None:
    record(tmp_path, "proved")
    ran = bash(script("release", job, "docker pull"), TARGET="release", TOKEN="t")
    assert ran.outputs == {"name": f"ghcr.io/some-owner/flashinfer-release@{DIGEST}"}
    assert ran.asked[-1] == f"docker pull --quiet ghcr.io/some-owner/flashinfer-release@{DIGEST}"


@pytest.mark.parametrize("job", ["smoke", "gsm8k"])
def test_without_a_record_no_image_is_taken(bash: Any, job: str) -> None:
    ran = bash(script("release", job, "docker pull"), TARGET="release", TOKEN="t")
    assert (ran.code == 0, ran.asked, ran.outputs) == (False, [], {})


def test_an_evaluation_is_compared_where_the_release_before_has_a_record(bash: Any, tmp_path: Path) -> None:
    text = script("release", "gsm8k", "nox -s gsm8k")
    wanted = {"CONFIG": "a.yaml", "IMAGE": "i", "BASELINE": "before/gsm8k-a.json"}
    assert bash(text, **wanted).asked[-1] == "nox -s gsm8k -- a.yaml --image i --restarts 1"
    write(tmp_path / "work", "before/gsm8k-a.json", "{}")
    assert bash(text, **wanted).asked[-1].endswith("--restarts 1 --baseline before/gsm8k-a.json")


@pytest.mark.parametrize("code", [0, 4])
def test_nothing_is_published_of_an_image_that_the_attestation_is_not_about(
    bash: Any, tmp_path: Path, code: int
) -> None:
    record(tmp_path, "evidence")
    text = script("release", "publish", "verify-attestation")
    ran = bash(text, CHANNEL="release", TARGET="release", NOX_CODE_verify_attestation=str(code))
    assert ran.code == code
    assert f"--subject {DIGEST}" in ran.asked[0]
    assert ran.outputs.get("digest") == (DIGEST if code == 0 else None)


@pytest.mark.parametrize("same", [True, False])
def test_a_published_name_that_is_another_image_ends_red(bash: Any, *, same: bool) -> None:
    text = script("release", "publish", "imagetools create")
    ran = bash(text, NAME="n", TAG="t", DIGEST=DIGEST, INSPECTED=DIGEST if same else "sha256:" + "0" * 64)
    assert (ran.code == 0) == same
    assert ran.asked[0] == f"docker buildx imagetools create --prefer-index=false --tag n:t n@{DIGEST}"


VERSIONS = [
    {"id": 1, "created_at": "2025-01-02T03:04:05Z", "tags": ["staging-11"]},
    {"id": 2, "created_at": "2025-01-03T03:04:05Z", "tags": ["staging-12", "0.6.13-cu13.0.2"]},
    {"id": 3, "created_at": "2025-01-04T03:04:05Z", "tags": []},
    {"id": 4, "created_at": "2025-01-05T03:04:05Z", "tags": ["staging-14", "staging-15"]},
]
PRUNE = {"DELETE": "true", "GH_TOKEN": "t0ken", "OWNER": "Some-Owner", "REPOSITORY": "o/n", "SAID": "",
         "BUILD": json.dumps({"include": [{"target": name} for name in ("release", "release", "nightly")]})}  # fmt: skip


def prune(bash: Any, tmp_path: Path, **more: str) -> Ran:
    """The script over the same versions for both images, with run 15 the only recent one."""
    write(tmp_path, "versions", "".join(f"{json.dumps(one)}\n" for one in VERSIONS))
    write(tmp_path, "runs", "15\n")
    (tmp_path / "work/ci").mkdir()
    shutil.copy(ROOT / "ci/abandoned.py", tmp_path / "work/ci")
    files = {"VERSIONS": os.fspath(tmp_path / "versions"), "RUNS": os.fspath(tmp_path / "runs")}
    ran: Ran = bash(script("prune", "prune", "abandoned.py"), **{"KIND": "User", **PRUNE, **files, **more})
    return ran


@pytest.mark.parametrize(("kind", "owner"), [("User", "users"), ("Organization", "orgs")])
def test_what_nobody_can_publish_any_more_is_taken_away_and_nothing_else(
    bash: Any, tmp_path: Path, kind: str, owner: str
) -> None:
    ran = prune(bash, tmp_path, KIND=kind)
    assert ran.code == 0
    assert [line for line in ran.asked if "DELETE" in line] == [
        f"gh api --method DELETE {owner}/Some-Owner/packages/container/flashinfer-{name}/versions/1"
        for name in ("nightly", "release")
    ]
    assert ran.summary == "flashinfer-nightly: staging-11\nflashinfer-release: staging-11\n"


def test_what_would_be_taken_away_is_listed_by_hand_first(bash: Any, tmp_path: Path) -> None:
    ran = prune(bash, tmp_path, DELETE="false")
    assert (ran.code, "DELETE" in "".join(ran.asked)) == (0, False)
    assert "flashinfer-release: staging-11" in ran.summary


@pytest.mark.parametrize(
    ("said", "code"), [("gh: Package not found. (HTTP 404)", 0), ("gh: Bad gateway (HTTP 502)", 3)]
)
def test_an_image_that_was_never_pushed_is_passed_by_and_silence_is_no_answer(
    bash: Any, tmp_path: Path, said: str, code: int
) -> None:
    ran = prune(bash, tmp_path, SAID=said)
    assert (ran.code, "DELETE" in "".join(ran.asked)) == (code, False)


def test_without_the_list_of_recent_runs_nothing_is_taken_away(bash: Any, tmp_path: Path) -> None:
    ran = prune(bash, tmp_path, RUNS="nowhere")
    assert (ran.code != 0, "DELETE" in "".join(ran.asked)) == (True, False)


def test_started_by_hand_nothing_is_taken_away_unless_it_is_asked_for() -> None:
    (step,) = (step for step in steps("prune", "prune") if "abandoned.py" in step.get("run", ""))
    assert step["env"]["DELETE"] == "${{ github.event_name == 'schedule' || inputs.delete }}"
