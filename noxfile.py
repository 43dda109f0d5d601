"""Table of contents: one session per job. Words after `--` go to the job."""

from __future__ import annotations

import hashlib
import sys
from glob import glob
from pathlib import Path

import nox

nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = True
nox.options.error_on_external_run = True
nox.options.sessions = ["tests"]

ENDING_S = 120.0
"""What we run has so long after Ctrl-C to end what it started; left to itself, nox kills it after half a second."""


def prepare(session: nox.Session, *groups: str) -> None:
    """Installs and compiles the project and the groups, again only after pyproject.toml has changed."""
    wanted = hashlib.sha256(Path("pyproject.toml").read_bytes() + repr(groups).encode()).hexdigest()
    stamp = Path(session.virtualenv.location, "installed-for")
    if not stamp.is_file() or stamp.read_text() != wanted:
        session.install("-e", ".", *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), *groups))
        session.run("python", "-m", "compileall", "-q", "tooling", success_codes=[0, 1], silent=True)
        stamp.write_text(wanted)


def tooling(session: nox.Session, command: str) -> None:
    """Runs one command of the tool and ends nox with the command's own exit code."""
    prepare(session)
    try:
        words = ["python", "-m", "tooling", command, *session.posargs]
        session.run(*words, stderr=None, interrupt_timeout=ENDING_S, terminate_timeout=ENDING_S)
    except nox.command.CommandFailed as failed:
        raise SystemExit(failed.return_code or 1) from None


@nox.session(default=False)
def bump(session: nox.Session) -> None:
    """Move the FlashInfer pin everywhere or nowhere: `nox -s bump -- 0.6.13`."""
    tooling(session, "bump")


@nox.session(default=False)
def check(session: nox.Session) -> None:
    """Say whether every place agrees with versions.json."""
    tooling(session, "check")


@nox.session(default=False)
def sites(session: nox.Session) -> None:
    """List every place that holds a FlashInfer version: `nox -s sites -- --root ../vllm`."""
    tooling(session, "sites")


@nox.session(default=False)
def init(session: nox.Session) -> None:
    """Write a release.toml from the pins in a tree: `nox -s init -- --root ../vllm`."""
    tooling(session, "init")


@nox.session(default=False)
def outdated(session: nox.Session) -> None:
    """Say whether a newer release could be taken, for a scheduled job."""
    tooling(session, "outdated")


@nox.session(default=False)
def image(session: nox.Session) -> None:
    """Build the CUDA images and prove that the pin is what is inside: `nox -s image -- release --plan`."""
    tooling(session, "image")


@nox.session(default=False)
def cache(session: nox.Session) -> None:
    """Carry a tuned kernel cache: `nox -s cache -- show FILE`."""
    tooling(session, "cache")


@nox.session(default=False)
def smoke(session: nox.Session) -> None:
    """Prove on a GPU that gating is what the table says: `nox -s smoke -- --jit-cache DIR`."""
    elsewhere = {"--image", "--explain", "--help", "-h"}
    if elsewhere.isdisjoint(word.partition("=")[0] for word in session.posargs):
        session.install("-r", "requirements/cuda.txt")
    tooling(session, "smoke")


@nox.session(default=False)
def gsm8k(session: nox.Session) -> None:
    """Start a server and evaluate it: `nox -s gsm8k -- configs/gsm8k/CONFIG.yaml`."""
    tooling(session, "gsm8k")


@nox.session(name="verify-attestation", default=False)
def verify_attestation(session: nox.Session) -> None:
    """Check what an attestation of the gate says: `nox -s verify-attestation -- gate.intoto.json`."""
    tooling(session, "verify-attestation")


@nox.session(default=False)
def matrix(session: nox.Session) -> None:
    """Say what CI builds and on which GPUs it runs: `nox -s matrix -- --channel release --github`."""
    tooling(session, "matrix")


@nox.session(default=False)
def gate(session: nox.Session) -> None:
    """One verdict from evidence: `nox -s gate -- --channel release --evidence DIR`."""
    tooling(session, "gate")


@nox.session(default=False)
def probe(session: nox.Session) -> None:
    """Read what a release can do, from its wheel: `nox -s probe -- 0.7.4`."""
    tooling(session, "probe")


@nox.session(default=False)
def capabilities(session: nox.Session) -> None:
    """Show facts, known faults and gating: `nox -s capabilities -- 0.6.13` or `-- 0.6.12..0.7.4`."""
    tooling(session, "capabilities")


@nox.session(default=False)
def capabilities_matrix(session: nox.Session) -> None:
    """Make docs/capabilities-matrix.md anew from the table."""
    prepare(session)
    session.run("python", "-m", "tooling", "capabilities", "--matrix", "--output", "docs/capabilities-matrix.md")


@nox.session(name="real-trees", default=False)
def real_trees(session: nox.Session) -> None:
    """Bump published source trees and compare: `nox -s real-trees -- vllm==0.12.0 vllm==0.13.0`."""
    prepare(session)
    session.run("python", "-m", "benchmarks.real_trees", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests: `nox -s tests -- -k bump --run-online`."""
    prepare(session, "tests")
    words = ["python", "-m", "pytest", *session.posargs]
    session.run(*words, interrupt_timeout=ENDING_S, terminate_timeout=ENDING_S)


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Hold the branch coverage of the pins and of the file edge to 95 %."""
    prepare(session, "tests")
    session.run("coverage", "erase")
    session.run(
        "coverage", "run", "-m", "pytest", *(session.posargs or ["tests/pins", "tests/edges/files", "tests/commands"])
    )
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report", "--include=tooling/pins/*,tooling/edges/files/*", "--fail-under=95")


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure a bump beside other tools: `nox -s bench -- --rounds 20`."""
    prepare(session)
    session.install("virtualenv")
    session.run("python", "benchmarks/bump.py", "--nox", sys.executable, *session.posargs)


@nox.session(default=False)
def lint(session: nox.Session) -> None:
    """Check style and types."""
    prepare(session, "lint", "tests")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("hadolint", "docker/Dockerfile", "docker/Dockerfile.nightly_torch")
    session.run("shellcheck", ".ci/run", *glob("ci/*.sh"), *glob("docker/*.sh"))
    session.run("jactionlint", "--strict-exit")
    session.run("python", "-m", "tooling", "image", "--lint")
