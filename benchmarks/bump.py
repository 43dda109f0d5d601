"""Times this bump beside bump-my-version and tbump on the same four files, and shows what each leaves when killed.

    nox -s bench                     20 rounds, everything
    nox -s bench -- --rounds 5       fewer

Every tool moves the pin of this repository's four files to and fro, in a copy of its own, without an index and without
committing. Rounds are interleaved, so that a busy machine slows all alike; figures are medians of the rounds. The
other tools live in virtual environments of their own under .cache/bench.
"""

from __future__ import annotations

import argparse
import compileall
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CACHE = REPOSITORY / ".cache" / "bench"
FILES = ("versions.json", "requirements/cuda.txt", "docker/Dockerfile", "docker/Dockerfile.nightly_torch")
KILLER = Path(__file__).with_name("kill_at_file.py")
OTHERS = {"bump-my-version": "bump-my-version==1.8.1", "tbump": "tbump==6.11.0"}
NOXFILE = """\
import nox
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True
@nox.session
def empty(session):
    pass
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A way to move the pin: its interpreter, the words before the version and after it, and its own settings."""

    name: str
    python: str
    module: tuple[str, ...]
    words: tuple[str, ...] = ()
    settings: str = ""
    settings_file: str = ""

    def command(self, version: str) -> list[str]:
        return [self.python, *self.module, *(word.format(version=version) for word in self.words)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run: seconds on the clock, seconds of processor, peak memory in MiB of its largest process."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="runs of each tool (default: 20)")
    parser.add_argument("--nox", default=sys.executable, metavar="PYTHON", help="the interpreter that has nox")
    args = parser.parse_args()
    rounds = args.rounds
    with tempfile.TemporaryDirectory() as folder:
        tools = make_tools()
        trees = {tool.name: make_tree(Path(folder, tool.name), tool) for tool in tools}
        print_table("one bump of the four files, offline", compare(tools, trees, rounds), floor="python -c pass")
        print_table("warm nox session", compare_nox(Path(folder), rounds, args.nox), floor="empty session")
        for tool in tools[1:]:
            print_killed(tool, Path(folder, "killed"))
    return 0


def make_tools() -> list[Tool]:
    """This tool and the others, all compiled to bytecode: pip does that for the others when it installs them."""
    here = sys.executable
    compileall.compile_dir(REPOSITORY / "tooling", quiet=1)
    tools = [
        Tool(name="python -c pass", python=here, module=("-c", "pass")),
        Tool(name="bump (this)", python=here, module=("-m", "tooling"), words=("bump", "{version}", "--offline")),
    ]
    for name, requirement in OTHERS.items():
        python = CACHE / name / "bin" / "python"
        if not python.exists():
            print(f"installing {requirement}", file=sys.stderr)
            subprocess.run([here, "-m", "virtualenv", "--quiet", CACHE / name], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", requirement], check=True)
    tools.append(
        Tool(
            name="bump-my-version",
            python=str(CACHE / "bump-my-version" / "bin" / "python"),
            module=("-c", "from bumpversion.cli import cli; cli()"),
            words=("bump", "--new-version", "{version}", "--allow-dirty", "--no-commit", "--no-tag"),
            settings_file=".bumpversion.toml",
            settings=BUMP_MY_VERSION,
        )
    )
    tools.append(
        Tool(
            name="tbump",
            python=str(CACHE / "tbump" / "bin" / "python"),
            module=("-c", "from tbump.cli import main; main()"),
            words=("{version}", "--only-patch", "--non-interactive"),
            settings_file="tbump.toml",
            settings=TBUMP,
        )
    )
    return tools


BUMP_MY_VERSION = r"""
[tool.bumpversion]
current_version = "0.6.12"
parse = "(?P<major>\\d+)\\.(?P<minor>\\d+)\\.(?P<patch>\\d+)"
serialize = ["{major}.{minor}.{patch}"]

[[tool.bumpversion.files]]
filename = "versions.json"
search = "\"FLASHINFER_VERSION\": {{\n      \"default\": \"{current_version}\""
replace = "\"FLASHINFER_VERSION\": {{\n      \"default\": \"{new_version}\""

[[tool.bumpversion.files]]
filename = "requirements/cuda.txt"
search = "flashinfer-python=={current_version}"
replace = "flashinfer-python=={new_version}"

[[tool.bumpversion.files]]
filename = "requirements/cuda.txt"
search = "flashinfer-cubin=={current_version}"
replace = "flashinfer-cubin=={new_version}"

[[tool.bumpversion.files]]
filename = "docker/Dockerfile"
search = "ARG FLASHINFER_VERSION={current_version}"
replace = "ARG FLASHINFER_VERSION={new_version}"

[[tool.bumpversion.files]]
filename = "docker/Dockerfile.nightly_torch"
search = "ARG FLASHINFER_VERSION={current_version}"
replace = "ARG FLASHINFER_VERSION={new_version}"
"""

TBUMP = r"""
[version]
current = "0.6.12"
regex = '(?P<major>\d+)\.(?P<minor>\d+)\.(?P<patch>\d+)'

[git]
message_template = "Bump to {new_version}"
tag_template = "v{new_version}"

[[file]]
src = "versions.json"
search = '"default": "{current_version}"'

[[file]]
src = "requirements/cuda.txt"
search = "flashinfer-python=={current_version}"

[[file]]
src = "requirements/cuda.txt"
search = "flashinfer-cubin=={current_version}"

[[file]]
src = "docker/Dockerfile"
search = "ARG FLASHINFER_VERSION={current_version}"

[[file]]
src = "docker/Dockerfile.nightly_torch"
search = "ARG FLASHINFER_VERSION={current_version}"
"""


def make_tree(root: Path, tool: Tool) -> Path:
    """This repository's four files and settings at 0.6.12, committed, and the other tool's own settings."""
    for name in [*FILES, "release.toml", "docker/docker-bake.hcl", ".gitignore"]:
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text((REPOSITORY / name).read_text().replace(held_version(), "0.6.12"))
    if tool.settings:
        (root / tool.settings_file).write_text(tool.settings)
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "pins"],
    ):
        subprocess.run(["git", "-C", root, *words], check=True)
    return root


def held_version() -> str:
    (pin, *_) = re.findall(r"flashinfer-python==(\S+)", (REPOSITORY / "requirements" / "cuda.txt").read_text())
    return str(pin)


def compare(tools: Sequence[Tool], trees: dict[str, Path], rounds: int) -> dict[str, list[Sample]]:
    """Every tool moves 0.6.12 to 0.6.13 and back; the first round, which fills caches, is not counted."""
    samples: dict[str, list[Sample]] = {tool.name: [] for tool in tools}
    for number in range(rounds + 1):
        version = "0.6.12" if number % 2 else "0.6.13"
        for tool in tools:
            sample = measure(tool.command(version), trees[tool.name])
            if number:
                samples[tool.name].append(sample)
            if tool.words and pins_of(trees[tool.name]) != [version] * 5:
                raise SystemExit(f"{tool.name} did not move the pins to {version}: {pins_of(trees[tool.name])}")
    return samples


def compare_nox(folder: Path, rounds: int, python: str) -> dict[str, list[Sample]]:
    (folder / "empty").mkdir()
    (folder / "empty" / "noxfile.py").write_text(NOXFILE)
    tree = make_tree(folder / "nox", make_tools()[0])
    empty = [python, "-m", "nox", "--noxfile", str(folder / "empty" / "noxfile.py"), "--session", "empty"]
    samples: dict[str, list[Sample]] = {"empty session": [], "nox -s bump": []}
    for number in range(rounds + 1):
        version = "0.6.12" if number % 2 else "0.6.13"
        full = [python, "-m", "nox", "-s", "bump", "--", version, "--offline", "--root", str(tree)]
        for name, command in (("empty session", empty), ("nox -s bump", full)):
            sample = measure(command, REPOSITORY)
            if number:
                samples[name].append(sample)
    return samples


def measure(command: Sequence[str], folder: Path) -> Sample:
    """Runs the command in the folder; stops the benchmark if it fails."""
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.stdout.read() if process.stdout else b""
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}:\n{output.decode(errors='replace')}")
    return Sample(wall_s=wall_s, cpu_s=usage.ru_utime + usage.ru_stime, peak_mib=usage.ru_maxrss / 1024)


def print_table(title: str, samples: dict[str, list[Sample]], *, floor: str) -> None:
    rounds = len(next(iter(samples.values())))
    print(f"\n{title}: medians of {rounds} interleaved rounds\n")
    print(f"| {'':16} | wall ms | CPU ms | peak MiB | wall, times {floor} |")
    print(f"|{'-' * 18}|--------:|-------:|---------:|{'-' * (14 + len(floor))}:|")
    base = statistics.median(sample.wall_s for sample in samples[floor])
    for name, runs in samples.items():
        wall, cpu, peak = (
            statistics.median(getattr(run, key) for run in runs) for key in ("wall_s", "cpu_s", "peak_mib")
        )
        print(f"| {name:16} | {wall * 1000:7.0f} | {cpu * 1000:6.0f} | {peak:8.1f} | {wall / base:.2f} |")


def print_killed(tool: Tool, root: Path) -> None:
    """Kills the tool when it has just opened or replaced pinned file n, runs it again, and says what there is."""
    print(f"\n{tool.name}, killed (SIGKILL) at file n of four:\n")
    print("| n | after the kill | the same command again | then |")
    print("|--:|---|---|---|")
    for number in range(1, len(FILES) + 1):
        shutil.rmtree(root, ignore_errors=True)
        make_tree(root, tool)
        words = [tool.python, KILLER, str(number), *tool.command("0.6.13")[1:]]
        subprocess.run(words, cwd=root, capture_output=True, check=False)
        left = describe(root)
        again = subprocess.run(tool.command("0.6.13"), cwd=root, capture_output=True, check=False)
        print(f"| {number} | {left} | exit {again.returncode} | {describe(root)} |")


def describe(root: Path) -> str:
    """How many pinned files are old, new and empty, and what lies about."""
    texts = [(root / name).read_text() for name in FILES]
    counts = {
        "old": sum("0.6.12" in text and "0.6.13" not in text for text in texts),
        "new": sum("0.6.13" in text and "0.6.12" not in text for text in texts),
        "mixed": sum("0.6.13" in text and "0.6.12" in text for text in texts),
        "of 0 bytes": sum(not text for text in texts),
    }
    status = subprocess.run(["git", "-C", root, "status", "--porcelain"], capture_output=True, text=True, check=True)
    strays = status.stdout.count("??")
    return ", ".join(
        [*(f"{count} {kind}" for kind, count in counts.items() if count), *([f"{strays} stray"] * bool(strays))]
    )


def pins_of(root: Path) -> list[str]:
    """The versions in the four files, five of them."""
    text = "".join((root / name).read_text() for name in FILES)
    return re.findall(
        r"(?:flashinfer-(?:python|cubin)==|ARG FLASHINFER_VERSION=|FLASHINFER_VERSION\": {\s+\"default\": \")([0-9.]+)",
        text,
    )


if __name__ == "__main__":
    raise SystemExit(main())
