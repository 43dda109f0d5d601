"""Every command in README, CONTRIBUTING and docs is run here, or read by its own parser and said why it is not run.

`nox -s X -- …` is run as the tooling command that the session passes its words to, in this process, in a copy of the
checkout; sessions that do something else are in the table of those that are not run.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gate.attested import FILES, envelope, verdict
from tests.repo.commands import ROOT, STANDS_FOR, Found, read_with_its_parser, sessions, split, tooling_words
from tests.trees import commit_all, make_tree, write
from tooling import cli
from tooling.gate.attestation import render_statement
from tooling.gate.policy_text import parse_policy
from tooling.gate.values import Outcome, Requirement

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = ("nox", "python", "python3", "tooling", "pip", "docker", "cosign", "gh", "ci/engine.sh", ".ci/run", "uv")
SMOKE_RECORD = "tests/data/smoke/h200-0.6.13.json"

RUN: dict[str, int] = {
    "nox -s check": 0,
    "nox -s sites -- --root DIR": 0,
    "nox -s init -- --root DIR": 0,
    "nox -s capabilities -- 0.6.13": 0,
    "nox -s capabilities -- 0.6.12..0.7.4": 0,
    "nox -s capabilities -- 0.6.13..0.6.12": 0,
    "nox -s gsm8k -- CONFIG --plan": 0,
    "nox -s gate": 0,
    "nox -s gate -- --channel release": 5,
    "nox -s gate -- --channel release --missing": 5,
    "nox -s gate -- --channel release --evidence build/ gpu/ eval/": 5,
    "nox -s gate -- --channel release --attest gate.intoto.json": 2,
    "nox -s verify-attestation -- gate.intoto.json --channel release --subject sha256:… --predicate predicate.json": 0,
    "nox -s verify-attestation -- gate.sigstore.json --channel release --subject sha256:…": 0,
    "nox -s verify-attestation -- FILE --channel release": 0,
    "nox -s matrix -- --channel release": 0,
    "nox -s sites -- --root ../vllm": 0,
    "nox -s init -- --root ../vllm": 0,
    "nox -s check -- --root ../vllm": 0,
    "python -m tooling smoke --explain evidence/smoke-sm90.json": 0,
    f"python -m tooling smoke --explain {SMOKE_RECORD}": 0,
    "python -m tooling matrix --channel release": 0,
    "python -m tooling matrix --channel release --kind gpu": 0,
    "python -m tooling --root vllm-0.33.0 sites": 0,
}
"""Commands that need no network, engine or GPU, and what they end with in a copy of this checkout. The gate's: with no
record but check's it is INCOMPLETE, and there is no image to attest."""

ONLINE: dict[str, int] = {
    "nox -s bump -- 0.6.12": 0,
    "nox -s bump -- 0.6.13": 0,
    "nox -s bump -- 0.6.13 --root ../vllm": 0,
    "nox -s outdated": 0,
}
"""Commands that ask the package index, run with --run-online. Without --add-index or --drop-cubin the pin is the newest that can be
installed: cubin left the public index after it."""

ITSELF = "it would run the tests that this one is among"
TOOL = "another project's tool, which is not installed here; its documentation was read for the options"
GPU = "needs a GPU; tests/smoke/workers rehearses every scenario without one"
NOT_RUN: dict[str, str] = {
    "nox -s tests": ITSELF,
    "nox -s tests -- --run-online": ITSELF,
    "nox -s tests -- --run-browser": ITSELF,
    "nox -s tests -- --run-server": ITSELF,
    "nox -s tests -- --hypothesis-profile=hunt": ITSELF,
    "nox -s tests -- --run-gpu": ITSELF,
    "nox -s coverage": ITSELF,
    "nox -s tests -- --run-docker": ITSELF,
    "nox -s lint": ".ci/run runs it before the tests",
    ".ci/run": ITSELF,
    "nox -s bench -- --rounds 8": "measures for minutes",
    "nox -s bump": "the name of a session in a report of its speed; it needs a version",
    "nox -s capabilities_matrix": "writes the document; tests/capabilities compares it with the table",
    "nox -s image": "builds for minutes in a Docker engine; tests/images runs it with --run-docker",
    "nox -s image -- --verify NAME": "needs a Docker engine; tests/images runs it with --run-docker",
    "nox -s cache -- show FILE": "needs a tuned cache; tests/warmup makes one",
    "python -m tooling cache export tuned.json": "needs a GPU; tests/warmup exports without one",
    "python -m tooling cache verify tuned.json": "needs a GPU; tests/warmup verifies without one",
    "python -m tooling cache import tuned.json": "needs a GPU; tests/warmup imports without one",
    "nox -s gsm8k -- CONFIG": "needs a model server; tests/gsm8k starts one with --run-server",
    "nox -s gsm8k -- configs/gsm8k/qwen3-0.6b-vllm.yaml --data ../gsm8k": "needs vLLM, a model and GSM8K",
    "nox -s gsm8k -- CONFIG --image flashinfer-release:0.6.13-cu13.0.2 --restarts 1": "needs an image and a GPU",
    "nox -s gsm8k -- CONFIG --server http://127.0.0.1:8000": "needs a model server",
    "nox -s gsm8k -- CONFIG --baseline baselines/gsm8k-qwen3-0.6b-vllm.json": "needs vLLM, a model and GSM8K",
    "nox -s probe -- VERSION --add": "writes the shipped table",
    "nox -s probe -- 0.7.4": "reads a published wheel; tests/capabilities does it with --run-online",
    "nox -s probe -- 0.7.5 --add": "0.7.5 is not published; writes the shipped table",
    "nox -s probe -- all": "reads every published wheel, for minutes",
    "nox -s probe -- all --add": "reads every published wheel, for minutes",
    "nox -s probe -- 0.6.13 --behaviour": "installs a release; tests/capabilities does it with --run-online",
    "python -m tooling probe 0.7.4 --no-cache": "reads 25 MB of a published wheel",
    "python -m tooling probe 0.7.4 --without-operations --no-cache": "reads a published wheel",
    "python -m tooling probe all": "reads every published wheel, for minutes",
    "python -m tooling probe all --without-operations --no-cache": "reads every published wheel, for half a minute",
    "nox -s outdated -- --drop-cubin --with-companions --json": "asks the index for a minute; ONLINE runs it without",
    "python benchmarks/gsm8k_client.py": "measures for minutes",
    "python benchmarks/image_rebuild.py --base-image NAME": "builds images in a Docker engine, for minutes",
    "python benchmarks/image_rebuild.py --base-image BASE --ca-bundle FILE": "builds images, for minutes",
    "python benchmarks/warmup_gpu.py --out FILE": "needs a GPU",
    "nox -s smoke": GPU,
    "nox -s smoke -- --image flashinfer-pin:0.6.13-cu13.0.2": "needs a GPU and an image; tests/smoke runs it with "
    "--run-docker",
    "python -m tooling smoke": GPU,
    "python -m tooling smoke --jit-cache DIR": GPU,
    "python -m tooling smoke --scenario one-rank two-ranks": GPU,
    "python -m tooling smoke --force-persistent": GPU,
    "python -m tooling smoke --image TAG": GPU,
    "python -m tooling smoke --image TAG --scenario one-rank two-ranks --jit-cache ~/.cache/smoke-jit": GPU,
    "python -m tooling smoke --image flashinfer-pin:0.6.13-cu13.0.2": GPU,
    "docker ps --all --filter label=tooling.smoke.container": "needs a Docker engine",
    "python -m tooling smoke --root ../vllm": GPU,
    "python -m tooling smoke --root TREE --force-persistent": GPU,
    "python -m tooling smoke --root TREE --jit-cache DIR": GPU,
    "ci/engine.sh up": "starts a Docker engine; tests with the marker docker do it",
    "ci/engine.sh base TAG": "makes a base image; tests with the marker docker do it",
    "python3 -m venv .venv": "makes an environment; .ci/run does the same before it starts nox",
    "pip install nox": "installs from the index; .ci/run does the same",
    "pip install git+https://github.com/OWNER/NAME@COMMIT": "installs from a repository that is not named yet",
    "pip install -e .": "installs from the index; nox does the same for every session",
    "pip config debug": "shows the machine's own settings",
    "pip config set global.cert /path/to/ca.pem": "would change the machine's own settings",
    "pip show": "the name of what scripts call inside an image",
    "docker buildx imagetools create --tag NAME:TAG NAME:TAG-amd64 NAME:TAG-arm64": "needs a registry",
    "docker save": "the name of a command whose archive is read",
    "cosign attest-blob --yes --statement gate.intoto.json --bundle gate.sigstore.json": TOOL,
    "cosign attest --yes --type https://in-toto.io/attestation/test-result/v0.1 --predicate predicate.json "
    "REGISTRY/NAME@sha256:…": TOOL,
    "cosign verify-attestation --type https://in-toto.io/attestation/test-result/v0.1 --certificate-identity-regexp "
    "IDENTITY --certificate-oidc-issuer ISSUER REGISTRY/NAME@sha256:…": TOOL,
    "cosign verify-blob-attestation --bundle gate.sigstore.json --type "
    "https://in-toto.io/attestation/test-result/v0.1 --digest HEX --digestAlg sha256 --certificate-identity-regexp "
    "IDENTITY --certificate-oidc-issuer ISSUER": TOOL,
    "gh attestation verify oci://REGISTRY/NAME@sha256:… --repo OWNER/NAME --predicate-type "
    "https://in-toto.io/attestation/test-result/v0.1": TOOL,
}
"""Commands that are not run, and why. One that no document has any more fails."""

_SYNOPSIS = re.compile(r"[\[\]]|(?<!:)…|\s\|\s|COMMAND")


def code(document: Path) -> Iterator[tuple[str, str]]:
    """Every line of code and every inline code, with its place; lines that go on deeper are one."""
    fenced, lines = False, document.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        where = f"{document.name}:{number}"
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            deeper = [more.strip() for more in lines[number : number + 8]]
            going_on = next((at for at, more in enumerate(deeper) if not more.startswith("[")), len(deeper))
            yield where, " ".join([line.strip(), *deeper[:going_on]])
        else:
            yield from ((where, span) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", line))


def found() -> tuple[list[Found], list[tuple[str, str]]]:
    """Commands with their words, and synopses with their places."""
    commands, synopses = [], []
    for document in DOCUMENTS:
        for where, text in code(document):
            for part in text.split(" && "):
                if not _begins(part):
                    continue
                if _SYNOPSIS.search(re.split(r"\s{3,}", part)[0]):
                    synopses.append((where, part))
                else:
                    commands.append(Found(where, split(part)))
    return commands, synopses


def _begins(text: str) -> bool:
    """A program with words behind it, or the name of a command of ours with an option or a version behind it."""
    first, _, rest = text.strip().partition(" ")
    if first in PROGRAMS:
        return bool(rest) or first == ".ci/run"
    return first in cli.COMMANDS and bool(re.match(r"(VERSION|\d+\.\d|--\w)", rest))


COMMANDS, SYNOPSES = found()
OF_OURS = [command for command in COMMANDS if command.words[0] in cli.COMMANDS]
CALLED = [command for command in COMMANDS if command.words[0] not in cli.COMMANDS]


def test_commands_and_synopses_are_found() -> None:
    assert len(CALLED) > 40
    assert {where.partition(":")[0] for where, _ in SYNOPSES} >= {"bump.md", "check.md", "image.md", "ci.md"}
    assert "bump --latest" in {command.text for command in OF_OURS}


@pytest.mark.parametrize("command", CALLED, ids=lambda command: f"{command.where} {command.text[:50]}")
def test_every_command_is_run_or_says_why_not(command: Found) -> None:
    assert command.text in {*RUN, *ONLINE, *NOT_RUN}, "run it in RUN or ONLINE, or say in NOT_RUN why not"


def test_every_reason_and_every_run_is_of_a_command_that_a_document_has() -> None:
    there = {command.text for command in CALLED}
    assert {*RUN, *ONLINE, *NOT_RUN} - there == set()
    assert len(RUN) + len(ONLINE) + len(NOT_RUN) == len({*RUN, *ONLINE, *NOT_RUN}), "one says that it is run and not"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command.where} {command.text[:50]}")
def test_every_option_is_one_of_the_command_s_own(command: Found) -> None:
    words = command.words
    if words[0] in cli.COMMANDS:
        assert _options(words) <= _known(words[0])
    elif words[:2] == ("nox", "-s"):
        assert words[2] in sessions()
    if words == ("nox", "-s", "bump"):
        return  # the session's name
    if (asked := tooling_words(words)) is not None:
        read_with_its_parser(*asked)
    elif words[0] == "python" and words[1].startswith("benchmarks/"):
        source = (ROOT / words[1]).read_text()
        assert all(f'"{option}"' in source for option in _options(words))
    elif words[0] == "ci/engine.sh":
        assert re.search(rf"^ +{words[1]}\) ", (ROOT / words[0]).read_text(), re.MULTILINE)
    elif "/" in words[0]:
        assert (ROOT / words[0]).is_file()


@pytest.mark.parametrize(("where", "text"), SYNOPSES)
def test_every_option_of_a_synopsis_is_one_of_the_command_s_own(where: str, text: str) -> None:
    words = tuple(re.sub(r"[\[\]|…]", " ", text).split())
    name = (tooling_words((*words[:3], "--")) or (words[0], ()))[0] if words[0] == "nox" else words[0]
    if name == "nox":
        assert words[2] in {*sessions(), "COMMAND"}, where
    elif name in cli.COMMANDS:
        assert _options(words) <= _known(name), where


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_option_of_a_command_stands_in_a_document(name: str) -> None:
    documented = "\n".join(document.read_text() for document in DOCUMENTS)
    options = {option for option in _known(name) if option.startswith("--")} - {"--help"}
    assert {option for option in options if not re.search(rf"{option}(?![\w-])", documented)} == set()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout's files as they are now, committed, with what the documents' placeholders name."""
    root = tmp_path_factory.mktemp("documented") / "checkout"
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ":!tests"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            write(root, name, (ROOT / name).read_bytes())
    commit_all(root, "as it is")
    assert cli.main(["check", "--root", str(root)]) == 0
    return root


@pytest.fixture
def checkout(original: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The copy to work in, with check's record in it; put back afterwards."""
    monkeypatch.chdir(original)
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    yield original
    shutil.rmtree(original.parent / "vllm", ignore_errors=True)
    (original / "evidence/smoke-sm90.json").unlink(missing_ok=True)
    for words in (["checkout", "--quiet", "."], ["clean", "-ffdq"]):
        subprocess.run(["git", "-C", str(original), *words], check=True)


def _lay_out(root: Path, text: str) -> None:
    """What the command's placeholders and files name."""
    words = text.split()
    for name in {"DIR", "vllm-0.33.0", "../vllm"} & set(words):
        make_tree(root / name, "0.6.12", release_toml=None, git=True)
    for folder in (word for word in words if word.endswith("/")):
        (root / folder).mkdir()
    if "CONFIG" in words:
        shutil.copy(root / "configs/gsm8k/transformers-cpu.yaml", root / "CONFIG")
    if "evidence/smoke-sm90.json" in words:
        shutil.copy(ROOT / SMOKE_RECORD, root / "evidence/smoke-sm90.json")
    if SMOKE_RECORD in words:
        (root / SMOKE_RECORD).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / SMOKE_RECORD, root / SMOKE_RECORD)
    if "verify-attestation" in words:
        _attest(root)


def _attest(root: Path) -> None:
    """A Statement about the image that the documents' digest stands for, bare and as a bundle."""
    policy = parse_policy((root / "release.toml").read_text(), path="release.toml")
    channel = policy.channel("release", path="release.toml")
    told = {
        "policy_sha256": channel.sha256,
        "images": {"release": STANDS_FOR["sha256:…"]},
        "files": FILES[::2],
        "requirements": [
            Requirement(stage=stage, subject=subject, outcome=Outcome.PASS) for stage, subject in channel.required
        ],
    }
    bare = json.loads(render_statement(verdict(**told)))
    for name in ("gate.intoto.json", "FILE"):
        write(root, name, json.dumps(bare))
    write(root, "gate.sigstore.json", json.dumps({"dsseEnvelope": envelope(bare)}))


@pytest.mark.parametrize("text", RUN)
def test_a_command_ends_as_documented(text: str, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _lay_out(checkout, text)
    assert _call(text) == RUN[text], capsys.readouterr()


@pytest.mark.online
@pytest.mark.parametrize("text", ONLINE)
def test_a_command_that_asks_the_index_ends_as_documented(
    text: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _lay_out(checkout, text)
    assert _call(text) == ONLINE[text], capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "first", "more"),
    [
        ("nox -s bump -- 0.6.12", "FlashInfer 0.6.13 -> 0.6.12 (downgrade)\n", ("--offline",)),
        ("nox -s capabilities -- 0.6.13..0.6.12", "FlashInfer 0.6.13 -> 0.6.12\n", ()),
        ("nox -s gate -- --channel release", "INCOMPLETE: ", ()),
    ],
    ids=["bump", "capabilities", "gate"],
)
def test_what_the_readme_shows_is_what_one_sees(
    text: str, first: str, more: tuple[str, ...], checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = [
        block
        for block in re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        if block.startswith(first)
    ]
    assert len(shown) == 1
    capsys.readouterr()
    _call(text, *more)
    said = capsys.readouterr().out
    for part in shown[0].split("…\n"):
        assert part in said


def _call(text: str, *more: str) -> int:
    asked = tooling_words(tuple(text.split()))
    assert asked is not None
    name, words = asked
    return cli.main([name, *(STANDS_FOR.get(word, word) for word in words), *more])


def _options(words: tuple[str, ...]) -> set[str]:
    behind = words[words.index("--") + 1 :] if "--" in words else words
    return {word.partition("=")[0].rstrip(",;") for word in behind if re.match(r"--\w", word)}


def _known(name: str) -> set[str]:
    """The options of the command's parser, those of its own subcommands too."""
    parsers, known = [cli.make_parser(name)], set[str]()
    while parsers:
        parser = parsers.pop()
        for action in parser._actions:
            known |= set(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
    return known
