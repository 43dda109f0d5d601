"""Dockerfiles: ARG, ENV, LABEL, RUN, heredocs, images; the forms that other tools went blind on."""

from __future__ import annotations

import pytest

from tests.pins.readers.tables import Sample, check_sample, read, sample, shown
from tooling.pins.sites import Role

D = "docker/Dockerfile"

ARGUMENTS = [
    sample("plain", D, "ARG FLASHINFER_VERSION=0.6.13\n", "0.6.13 pin"),
    sample("quoted", D, 'ARG FLASHINFER_VERSION="0.6.13"\n', '"0.6.13" pin'),
    sample("a-git-ref-keeps-its-v", D, 'ARG FLASHINFER_GIT_REF="v0.6.16.post3"\n', '"v0.6.16.post3" pin'),
    sample("short-name", D, "ARG FLASHINF_REF=v0.6.13\n", "v0.6.13 pin"),
    sample("no-default-is-no-pin", D, "ARG FLASHINFER_VERSION\nFROM x\n"),
    sample("several-on-a-line", D, "ARG CUDA_VERSION=13.0.2 FLASHINFER_VERSION=0.6.13\n", "0.6.13 pin"),
    sample("own-fallback", D, "ARG FLASHINFER_VERSION=${FLASHINFER_VERSION:-0.6.13}\n", "0.6.13 pin"),
    sample("another-variable-is-a-use", D, "ARG FLASHINFER_VERSION=${OTHER}\n", "${OTHER} use"),
    sample("twice-in-one-stage", D, "FROM x\nARG FLASHINFER_VERSION=0.6.13\nARG FLASHINFER_VERSION=0.6.13\n",
           "0.6.13 pin", "0.6.13 pin"),
    sample("before-from", D, "ARG FLASHINFER_VERSION=0.6.13\nFROM x\nARG FLASHINFER_VERSION\n", "0.6.13 pin"),
    sample("wheel-name", D, 'ARG FLASHINFER_CUDA128_WHEEL="flashinfer_python-0.2.6.post1%2Bcu128torch2.7-cp39-abi3-linux_x86_64.whl"\n',
           "0.2.6.post1%2Bcu128torch2.7 pin python"),
    sample("index-address-is-none", D, 'ARG FLASHINFER_CUDA128_INDEX_URL="https://example.invalid/whl/cu128/flashinfer"\n'),
    sample("a-trailing-comment-is-more-words", D, "ARG FLASHINFER_VERSION=0.6.16.post3 # was 0.6.14\n",
           "0.6.16.post3 pin"),
    sample("commented-out", D, "# ARG FLASHINFER_VERSION=0.6.12\n", "0.6.12 prose"),
    sample("a-commit-is-reported", D, "ARG FLASHINFER_GIT_REF=524304395bd1d8cd7d07db083859523fcaa246a4\n",
           "524304395bd1d8cd7d07db083859523fcaa246a4 use"),
    sample("other-variables", D, "ARG CUDA_VERSION=13.0.2\nARG FLASHINFER_CUDA_ARCH_LIST='9.0a'\nARG NIXL_VERSION=0.6.13\n"),
]  # fmt: skip
ENVIRONMENT = [
    sample("quoted", D, 'ENV FLASHINFER_VERSION="0.6.16.post3"\n', '"0.6.16.post3" pin'),
    sample("old-form", D, "ENV FLASHINFER_VERSION 0.6.16.post3\n", "0.6.16.post3 pin"),
    sample("continued", D, "ENV OTHER=1 \\\n    FLASHINFER_VERSION='0.6.16.post3'\n", "'0.6.16.post3' pin"),
    sample("label", D, 'LABEL flashinfer.version="0.6.13" a="0.6.13"\n', '"0.6.13" pin'),
]
RUNS = [
    sample("pip-literal", D, "RUN pip install flashinfer-python==0.6.13 torchcodec==0.6.13\n", "0.6.13 pin python"),
    sample("continued-with-comment", D, """\
        RUN uv pip install --system \\
            # keep 0.6.13 here
            flashinfer-cubin==0.6.13 \\
            nixl==0.6.13 \\
            && uv pip install flashinfer-jit-cache==0.6.13+cu130
        """, "0.6.13 pin cubin", "0.6.13+cu130 pin jit-cache"),
    sample("every-copy-in-one-run", D, """\
        RUN curl -fsSLO https://dl.example/flashinfer/v0.6.16.post3/flashinfer-0.6.16.post3.tar.gz \\
         && tar xf flashinfer-0.6.16.post3.tar.gz \\
         # keep this comment between continued lines
         && pip install ./flashinfer-0.6.16.post3 && rm -rf flashinfer-0.6.16.post3*
        """, "v0.6.16.post3 pin", *["0.6.16.post3 pin python"] * 4),
    sample("quoted-version", D, 'RUN pip install flashinfer-cubin=="0.6.11" nixl\n', '"0.6.11" pin cubin'),
    sample("single-quoted-version", D, "RUN pip install flashinfer-cubin=='0.6.11'\n", "'0.6.11' pin cubin"),
    sample("braces", D, "RUN pip install flashinfer-{cubin,jit-cache}==0.6.11\n", "0.6.11 pin"),
    sample("braces-of-others", D, "RUN pip install flashinfer-{bench,x}==0.6.11\n"),
    sample("add-git", D, "ADD https://github.com/flashinfer-ai/flashinfer.git#v0.6.11 /s\n", "v0.6.11 pin"),
    sample("add-git-folder", D, "ADD https://github.com/flashinfer-ai/flashinfer.git#v0.6.11:csrc /s\n", "v0.6.11 pin"),
    sample("use", D, "RUN pip install flashinfer-python==${FLASHINFER_VERSION}\n", "${FLASHINFER_VERSION} use python"),
    sample("bound", D, 'RUN pip install "flashinfer_python>=0.6.2" --no-deps\n', "0.6.2 minimum python"),
    sample("a-line-without-run", D, 'FROM x\npip install "flashinfer_python>=0.6.2"\n', "0.6.2 minimum python"),
    sample("checkout", D, """\
        RUN git clone --recursive https://github.com/flashinfer-ai/flashinfer.git \\
            && cd flashinfer \\
            && git checkout v0.2.2.post1 \\
            && git submodule update --init
        """, "v0.2.2.post1 pin"),
    sample("checkout-with-a-backslash-right-behind", D, """\
        RUN git clone https://github.com/flashinfer-ai/flashinfer.git && \\
            cd flashinfer && git checkout v0.2.2.post1\\
            && pip install .
        """, "v0.2.2.post1 pin"),
    sample("checkout-elsewhere", D, """\
        RUN git clone https://github.com/flashinfer-ai/flashinfer.git && git clone https://e.invalid/cutlass \\
            && cd cutlass && git checkout v0.2.2
        """),
    sample("branch-of-a-clone", D, """\
        RUN git clone --depth 1 --branch v0.6.3 --recursive https://github.com/flashinfer-ai/flashinfer.git \\
            && git clone --branch v0.4.1 https://github.com/EleutherAI/lmms-eval.git
        """, "v0.6.3 pin"),
    sample("heredoc", D, """\
        RUN --mount=type=cache,target=/x bash - <<'BASH'
            # flashinfer v0.1.0 was first
            git clone --depth 1 \\
              --branch v0.2.6.post1 \\
              https://github.com/flashinfer-ai/flashinfer.git flashinfer
            uv pip install flashinfer-cubin==0.2.6.post1
        BASH
        """, "v0.1.0 prose", "v0.2.6.post1 pin", "0.2.6.post1 pin cubin"),
    sample("python-c", D, """\
        RUN python3 -c "import flashinfer; assert flashinfer.__version__ == '0.6.13', 'torch 2.9.0'"
        """, "'0.6.13' pin"),
    sample("python-c-minimum", D, """\
        RUN python3 -c "from importlib.metadata import version as v; assert v('flashinfer-python') >= '0.6.13'"
        """, "'0.6.13' minimum"),
    sample("wheel-address", D, "RUN pip install https://github.com/flashinfer-ai/flashinfer/releases/download/v0.2.1.post2/"
           "flashinfer_python-0.2.1.post2+cu124torch2.6-cp38-abi3-linux_x86_64.whl ; fi\n",
           "v0.2.1.post2 pin", "0.2.1.post2+cu124torch2.6 pin python"),
    sample("git-address", D, "RUN pip install git+https://github.com/flashinfer-ai/flashinfer.git@v0.2.5#subdirectory=python\n",
           "v0.2.5 pin"),
    sample("patch-file", D, "COPY flashinfer-v0.6.14-x.patch /\nRUN git apply flashinfer-v0.6.14-x.patch\n",
           "v0.6.14 prose python", "v0.6.14 prose python"),
    sample("workdir", D, "WORKDIR /opt/flashinfer\nRUN git checkout v0.6.13\nWORKDIR /opt/x\nRUN git checkout v0.6.13\n",
           "v0.6.13 pin"),
    sample("shell-default", D, "RUN git clone -b ${FLASHINFER_REF:-v0.3.1} https://e.invalid/flashinfer\n", "v0.3.1 pin"),
    sample("case-branches", D, """\
        RUN case "$T" in \\
          2.8) FLASHINFER_VERSION=0.6.1; TORCH_VERSION=2.8.0;; \\
          *) FLASHINFER_VERSION=0.6.4;; esac
        """, "0.6.1 pin", "0.6.4 pin"),
    sample("image-tag", D, "FROM flashinfer/flashinfer:v0.6.13 AS base\n", "v0.6.13 pin"),
    sample("image-with-digest", D, f"FROM flashinfer/flashinfer:v0.6.13@sha256:{'ab' * 32}\n", "v0.6.13 lock"),
    sample("inner-tag", D, "FROM lmsysorg/sglang:v0.5.9-flashinfer0.6.3\n", "0.6.3 pin"),
    sample("another-image-at-the-same-version", D, "FROM vllm/vllm-flashinfer-less:0.6.13\n"),
    sample("another-repository-of-the-owner", D,
           "RUN git clone -b v0.1.2 https://github.com/flashinfer-ai/flashinfer-bench.git\n"),
    sample("add-archive", D, "ADD https://github.com/flashinfer-ai/flashinfer/archive/refs/tags/v0.6.13.tar.gz /x\n",
           "v0.6.13 pin"),
]  # fmt: skip


@pytest.mark.parametrize("item", [*ARGUMENTS, *ENVIRONMENT, *RUNS])
def test_a_dockerfile_s_sites(item: Sample) -> None:
    check_sample(item)


@pytest.mark.parametrize(
    "name", ["Dockerfile", "Dockerfile.nightly_torch", "cuda.Dockerfile", "Containerfile", "dockerfile-dev"]
)
def test_a_dockerfile_is_known_by_its_name(name: str) -> None:
    assert [site.spelling for site in read(name, "ARG FLASHINFER_VERSION=0.6.13\n")] == ["0.6.13"]


def test_a_variable_of_any_name_that_only_feeds_the_library_is_a_pin() -> None:
    text = "ARG FI=0.6.13\nRUN pip install flashinfer-python==${FI} flashinfer-cubin==$FI\n"
    assert next(shown(site) for site in read("Dockerfile", text)) == "0.6.13 pin"


def test_a_variable_that_feeds_another_package_too_is_not() -> None:
    text = "ARG V=0.6.13\nRUN pip install flashinfer-python==${V} nixl==${V}\n"
    assert [site for site in read("Dockerfile", text) if site.role is Role.PIN] == []


def test_an_alias_from_the_settings_is_a_pin() -> None:
    assert [shown(site) for site in read("Dockerfile", "ENV FI_VER=0.6.16.post3\n", "FI_VER")] == ["0.6.16.post3 pin"]


def test_another_escape_character_continues_lines_too() -> None:
    text = "# escape=`\nENV A=1 `\n    FLASHINFER_VERSION=0.6.13\n"
    assert [site.line for site in read("Dockerfile", text)] == [3]
