"""Table of contents: one session per job. Words after `--` go to the job."""

from __future__ import annotations

import hashlib
from pathlib import Path

import nox

nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = True
nox.options.error_on_external_run = True
nox.options.sessions = ["tests"]


def prepare(session: nox.Session, *groups: str) -> None:
    """Installs the project and the groups, again only after pyproject.toml has changed."""
    wanted = hashlib.sha256(Path("pyproject.toml").read_bytes() + repr(groups).encode()).hexdigest()
    stamp = Path(session.virtualenv.location, "installed-for")
    if not stamp.is_file() or stamp.read_text() != wanted:
        session.install("-e", ".", *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), *groups))
        stamp.write_text(wanted)


def tooling(session: nox.Session, command: str) -> None:
    """Runs one command of the tool and ends nox with the command's own exit code."""
    prepare(session)
    try:
        session.run("python", "-m", "tooling", command, *session.posargs, stderr=None)
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
def gsm8k(session: nox.Session) -> None:
    """Start a server and evaluate it: `nox -s gsm8k -- configs/gsm8k/CONFIG.yaml`."""
    tooling(session, "gsm8k")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests: `nox -s tests -- -k bump --run-online`."""
    prepare(session, "tests")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(default=False)
def lint(session: nox.Session) -> None:
    """Check style and types."""
    prepare(session, "lint", "tests")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
