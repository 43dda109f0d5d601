"""What `check` says of installs, overrides and leftovers, on texts alone."""

from __future__ import annotations

import pytest
from packaging.version import Version

from tests.pins.readers.tables import library
from tooling.findings import Severity
from tooling.pins.drift import check_pins
from tooling.pins.install_checks import check_installs
from tooling.pins.leftovers import check_leftovers, check_locks
from tooling.pins.override_checks import check_overrides
from tooling.pins.plan import plan_bump
from tooling.pins.scan import Tree, scan
from tooling.pins.settings import Settings
from tooling.pins.texts import SourceText

D, W = "docker/Dockerfile", ".github/workflows/release.yml"
PIN = ("requirements/cuda.txt", "flashinfer-python==0.6.13\n")


def tree(*files: tuple[str, str], aliases: tuple[str, ...] = ()) -> Tree:
    texts = [SourceText(path, text) for path, text in (PIN, *files)]
    return scan(texts, library=library(), settings=Settings(variable_aliases=aliases), versions_file=None)


def all_checks(made: Tree) -> list[tuple[str, str, int | None]]:
    findings = [*check_installs(made), *check_overrides(made), *check_leftovers(made), *check_locks(made)]
    return [(item.check, str(item.severity), item.line) for item in findings]


FAULTS = {
    "one architecture's branch is unpinned": (
        D, ('FROM x\nARG FLASHINFER_VERSION=0.6.13\nRUN if [ "$A" = arm64 ]; then pip install flashinfer-python; '
        "else pip install flashinfer-python==${FLASHINFER_VERSION}; fi\n"), [("unpinned", "error", 3)]),
    "a range in a line without an instruction": (D, '# newer\npip install "flashinfer_python>=0.6.2" --no-deps\n', [("unpinned", "error", 2)]),
    "an extra without a version": (D, "RUN uv pip install --system 'flashinfer-python[cu13]' torch\n", [("unpinned", "error", 1)]),
    "unpinned in a nested script": ("a.sh", 'bash -c "pip install flashinfer-cubin"\n', [("unpinned", "error", 1)]),
    "unpinned in a workflow": (W, "jobs:\n  a:\n    run: |\n      pip install x flashinfer-python\n", [("unpinned", "error", 4)]),
    "unpinned in an image definition": ("image.py", 'image.pip_install("flashinfer-python")\n', [("unpinned", "error", 1)]),
    "the version check is off in an image": (D, "ENV FLASHINFER_DISABLE_VERSION_CHECK=1\n", [("bypass", "error", 1)]),
    "the version check is off in the old form of ENV": (D, "ENV FLASHINFER_DISABLE_VERSION_CHECK 1\n", [("bypass", "error", 1)]),
    "the version check is off in a workflow": (W, 'env:\n  FLASHINFER_DISABLE_VERSION_CHECK: "1"\n', [("bypass", "error", 2)]),
    "the version check is off in a script": ("run.sh", "export FLASHINFER_DISABLE_VERSION_CHECK=1\n", [("bypass", "warning", 1)]),
    "a workflow's build argument holds another version": (
        W, "jobs:\n  a:\n    run: docker buildx build --build-arg FLASHINFER_VERSION=0.6.14 -f docker/Dockerfile .\n",
        [("override", "error", 3)]),
    "a workflow's build argument holds the same version": (
        W, "jobs:\n  a:\n    with:\n      build-args: |\n        CUDA=13\n        FLASHINFER_VERSION=0.6.13\n", [("override", "warning", 6)]),
    "bake's --set holds another version": (
        W, "jobs:\n  a:\n    run: docker buildx bake --set '*.args.FLASHINFER_VERSION=0.6.14'\n", [("override", "error", 3)]),
    "an ENV wins over the ARG": (
        D, "FROM x\nARG FLASHINFER_VERSION=0.6.13\nENV FLASHINFER_VERSION=0.6.13\n", [("shadowed-arg", "error", 3)]),
    "two names for one package": ("requirements/old.txt", "flashinfer==0.6.13\n", [("two-names", "error", 1)]),
    "an ARG that nobody fills": (
        D, "ARG FLASHINFER_VERSION\nFROM x\nARG FLASHINFER_VERSION\nRUN pip install flashinfer-python==${FLASHINFER_VERSION}\n",
        [("arg-without-value", "error", 1)]),
    "an index address with an empty variable": (
        D, ("FROM x\nARG CUDA_VERSION\nRUN uv pip install flashinfer-jit-cache==0.6.13 --extra-index-url "
        "https://flashinfer.ai/whl/cu$(echo $CUDA_VERSION | cut -d. -f1,2 | tr -d .)\n"), [("arg-without-value", "error", 2)]),
    "a variable with a name of its own next to an install": (
        D, "FROM x\nENV FI_VER=0.6.13\nRUN pip install flashinfer-python==0.6.13\n", [("unknown-variable", "error", 2)]),
    "a copy of the version under any name": (
        D, "FROM x\nENV KERNELS_VERSION=0.6.13\nRUN pip install flashinfer-python==0.6.13\n", [("unknown-variable", "error", 2)]),
    "a prefixed variable": ("a.sh", "EXPECTED_FLASHINFER_VERSION=0.6.8\n", [("unknown-variable", "error", 1)]),
    "a commit": (D, "ARG FLASHINFER_GIT_REF=21ea1d2545f74782b91eb8c08fd503ac4c0743fc\n", [("commit-pin", "warning", 1)]),
    "a wildcard in a RUN": (D, "RUN pip install flashinfer-cubin==0.6.*\n", [("unpinned", "error", 1)]),
    "a quoted wildcard in a RUN": (D, 'RUN pip install "flashinfer-cubin == 0.6.*"\n', [("unpinned", "error", 1)]),
    "a repository without a ref": (
        D, "RUN pip install git+https://github.com/flashinfer-ai/flashinfer#subdirectory=python\n", [("unpinned", "error", 1)]),
    "a named repository without a ref": (
        "run.sh", "pip install 'flashinfer-python @ git+https://github.com/flashinfer-ai/flashinfer.git'\n", [("unpinned", "error", 1)]),
    "the version check is off in Python": (
        "a.py", 'import os\nos.environ["FLASHINFER_DISABLE_VERSION_CHECK"] = "1"\n', [("bypass", "warning", 2)]),
    "the version check is off by default in Python": (
        "a.py", 'os.environ.setdefault("FLASHINFER_DISABLE_VERSION_CHECK", "1")\n', [("bypass", "warning", 1)]),
    "the version check is off in Python's image": (
        "a.py", 'image.env({"FLASHINFER_DISABLE_VERSION_CHECK": "1"})\n', [("bypass", "warning", 1)]),
    "braces without a version": (D, "RUN pip install flashinfer-{cubin,jit-cache}\n", [("unpinned", "error", 1)]),
    "braces with a wildcard": (D, "RUN pip install flashinfer-{cubin,jit-cache}==0.6.*\n", [("unpinned", "error", 1)]),
    "a stale lock": ("uv.lock", '[[package]]\nname = "flashinfer-python"\nversion = "0.6.12"\n', [("stale-lock", "error", 3)]),
}  # fmt: skip
SOUND = {
    "uninstall": (D, "RUN pip uninstall -y flashinfer-python flashinfer-cubin\n"),
    "a file that is installed": (D, "RUN pip install ./flashinfer-dist/*.whl && cd flashinfer && pip install .\n"),
    "a commented install": (D, "# pip install flashinfer-python\nRUN x\n"),
    "a conditional version": (D, "FROM x\nARG FLASHINFER_VERSION=0.6.13\nRUN pip install flashinfer-python${FLASHINFER_VERSION:+==$FLASHINFER_VERSION}\n"),
    "the check switched on": (D, "ENV FLASHINFER_DISABLE_VERSION_CHECK=0\n"),
    "the check's variable removed": ("run.sh", "unset FLASHINFER_DISABLE_VERSION_CHECK\nenv -u FLASHINFER_DISABLE_VERSION_CHECK x\n"),
    "an ENV that takes the ARG": (D, "FROM x\nARG FLASHINFER_VERSION=0.6.13\nENV FLASHINFER_VERSION=${FLASHINFER_VERSION}\n"),
    "another package at the same version": (
        D, "FROM x\nARG TORCHCODEC_VERSION=0.6.13\nRUN pip install flashinfer-python==0.6.13 torchcodec==${TORCHCODEC_VERSION}\n"),
    "a minimum": ("a.sh", "FLASHINFER_MIN_VERSION=0.6.2\n"),
    "platform arguments": (D, "FROM x\nARG TARGETARCH\nRUN echo $TARGETARCH; pip install flashinfer-python==0.6.13\n"),
    "a quoted version": (D, 'RUN pip install flashinfer-cubin=="0.6.13"\n'),
    "a repository with a ref": (D, "RUN pip install git+https://github.com/flashinfer-ai/flashinfer@v0.6.13\n"),
    "the check's variable read in Python": (
        "a.py", ('os.environ["FLASHINFER_DISABLE_VERSION_CHECK"] = "0"\nos.environ.get("FLASHINFER_DISABLE_VERSION_CHECK", "1")\n'
        'off = os.environ["FLASHINFER_DISABLE_VERSION_CHECK"] == "1"\n')),
    "braces with a version": (D, "RUN pip install flashinfer-{cubin,jit-cache}==0.6.13\n"),
    "a fresh lock": ("uv.lock", '[[package]]\nname = "flashinfer-python"\nversion = "0.6.13"\n'),
    "an architecture list": (D, "ARG FLASHINFER_CUDA_ARCH_LIST=9.0.1\n"),
    "a build argument of another package": (W, "jobs:\n  a:\n    run: docker build --build-arg CUDA_VERSION=13.0.2 . # flashinfer\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_found_with_its_line(case: tuple[str, str, list[tuple[str, str, int]]]) -> None:
    path, text, expected = case
    assert all_checks(tree((path, text))) == expected


@pytest.mark.parametrize("case", SOUND.values(), ids=SOUND.keys())
def test_what_is_sound_is_not_blamed(case: tuple[str, str]) -> None:
    assert all_checks(tree(case)) == []


def test_a_versions_file_fills_an_argument() -> None:
    text = "FROM x\nARG CUDA_VERSION\nRUN pip install flashinfer-jit-cache==0.6.13 -i https://flashinfer.ai/whl/cu${CUDA_VERSION}\n"
    baked = ("docker-bake.hcl", 'target "a" {\n  args = {\n    CUDA_VERSION = "13.0.2"\n  }\n}\n')
    assert all_checks(tree((D, text), baked)) == []


def test_a_suspect_is_a_warning_where_a_bump_asks() -> None:
    (finding,) = check_leftovers(
        tree((D, "RUN pip install flashinfer-python==0.6.13\nENV FI_VER=0.6.13\n")), severity=Severity.WARNING
    )
    assert (finding.severity, finding.line) == (Severity.WARNING, 2)


def test_an_alias_is_no_suspect() -> None:
    assert all_checks(tree((D, "ENV FI_VER=0.6.13\n"), aliases=("FI_VER",))) == []


REFERENCES = {
    "a tag": ("git+https://github.com/flashinfer-ai/flashinfer.git@v0.6.13", []),
    "a wheel": ("https://h.example/flashinfer_python-0.6.13-py3-none-any.whl", []),
    "a branch": ("git+https://github.com/flashinfer-ai/flashinfer.git@main", ["unpinned"]),
}


@pytest.mark.parametrize(("address", "expected"), REFERENCES.values(), ids=REFERENCES)
def test_a_direct_reference_is_an_exact_pin_where_it_names_a_version(address: str, expected: list[str]) -> None:
    made = tree(("requirements/more.txt", f"nixl\nflashinfer-python @ {address}\n"))
    assert [item.check for item in check_pins(made)] == expected
    assert [item.check for item in plan_bump(made, Version("0.6.14")).refusals] == expected


@pytest.mark.parametrize("line", ["git+https://github.com/flashinfer-ai/flashinfer", "-e git+https://github.com/flashinfer-ai/flashinfer.git#egg=x"])  # fmt: skip
def test_a_repository_without_a_ref_is_no_exact_pin(line: str) -> None:
    findings = check_pins(tree(("requirements/more.txt", f"nixl\n{line}\n")))
    assert [(item.check, item.line) for item in findings] == [("unpinned", 2)]
