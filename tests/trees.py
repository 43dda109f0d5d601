"""Small trees with the four pinned files, for tests of commands that work on a tree."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

FILES = ("versions.json", "requirements/cuda.txt", "docker/Dockerfile", "docker/Dockerfile.nightly_torch")

RELEASE_TOML = """\
[pins]
versions_file = "versions.json"

[[pins.required]]
path = "versions.json"

[[pins.required]]
path = "requirements/cuda.txt"
count = 2

[[pins.required]]
path = "docker/Dockerfile"

[[pins.required]]
path = "docker/Dockerfile.nightly_torch"
"""


def make_tree(
    root: Path, version: str = "0.6.12", *, release_toml: str | None = RELEASE_TOML, git: bool = False
) -> Path:
    """The four files at one version; with `git`, committed."""
    files = {
        "versions.json": versions_json(FLASHINFER_VERSION=version, CUDA_VERSION="13.0.2"),
        "requirements/cuda.txt": f"# kernels\nflashinfer-python=={version}\nflashinfer-cubin=={version}\nsome-other-lib=={version}\n",
        "docker/Dockerfile": (
            f"ARG CUDA_VERSION=13.0.2\nFROM nvidia/cuda:${{CUDA_VERSION}}\nARG FLASHINFER_VERSION={version}\n"
            "RUN pip install flashinfer-python==${FLASHINFER_VERSION}\n"
        ),
        "docker/Dockerfile.nightly_torch": (
            f'FROM scratch\nARG FLASHINFER_VERSION="{version}"\n'
            "RUN git clone --branch v${FLASHINFER_VERSION} https://example.invalid/flashinfer.git\n"
        ),
    }
    if release_toml is not None:
        files["release.toml"] = release_toml
    for path, text in files.items():
        write(root, path, text)
    if git:
        commit_all(root, f"pin {version}")
    return root


def versions_json(**variables: str) -> str:
    table = {"variable": {name: {"default": value} for name, value in variables.items()}}
    return json.dumps(table, indent=2) + "\n"


def write(root: Path, path: str, text: str | bytes) -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text if isinstance(text, bytes) else text.encode())
    return target


def commit_all(root: Path, message: str) -> str:
    """Commits everything, in a repository that is made if there is none; returns the commit."""
    if not (root / ".git").exists():
        _git(root, "init", "-q", "-b", "main")
    _git(root, "add", "-A")
    _git(root, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "-m", message)
    return _git(root, "rev-parse", "HEAD").strip()


def snapshot(root: Path) -> dict[str, bytes]:
    """Every file's bytes but those that no tree comparison counts: .git, .bump and evidence."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not {".git", ".bump", "evidence"} & set(path.relative_to(root).parts)
    }


def _git(root: Path, *words: str) -> str:
    """Git without this machine's own settings, which may want a signature or a hook."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True, env=env).stdout
