"""Why a build failed, out of its log: the first cause on top, and never a verdict on the release for a full disk."""

from __future__ import annotations

import pytest

from tooling.images.build_log import classify_failure, parse_steps

UV_CONFLICT = (
    "#13 2.1   x No solution found when resolving dependencies:\n"
    "#13 2.1   ╰─▶ Because you require flashinfer-python==0.6.13 and flashinfer-python==0.6.12, we can conclude that\n"
    "#13 2.1       your requirements are unsatisfiable."
)
LOGS = {
    "disk": ("#15 30.1 error: failed to write: No space left on device (os error 28)", "INFRA_DISK", "world"),
    "pip's disk": (
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "INFRA_DISK", "world",
    ),
    "disk after a conflict": (f"{UV_CONFLICT}\n#15 9 write /x: no space left on device", "INFRA_DISK", "world"),
    "conflict": (UV_CONFLICT, "VERSION_CONFLICT", "finding"),
    "pip's conflict": ("#9 3.2 ERROR: ResolutionImpossible: for help visit", "VERSION_CONFLICT", "finding"),
    "no wheel at that version": (
        ("#9 1 error: No solution found when resolving dependencies\n#9 1   cause: Because there is no version of "
        "flashinfer-cubin==0.6.14 and you require flashinfer-cubin==0.6.14, we can conclude that your requirements are "
        "unsatisfiable."),
        "PACKAGE_MISSING", "finding",
    ),
    "no such package": (
        ("#9 1 error: No solution found when resolving dependencies\n#9 1   cause: Because flashinfer-jit-cache was not "
        "found in the package registry and you require flashinfer-jit-cache==0.6.13"),
        "PACKAGE_MISSING", "finding",
    ),
    "companion": (
        ("#9 1 error: No solution found when resolving dependencies\n#9 1   cause: Because flashinfer-python==0.6.13 "
        "depends on one of:\n#9 1          apache-tvm-ffi>=0.1.6,<0.1.8\n#9 1       And because you require "
        "apache-tvm-ffi==0.1.1, we can conclude that your requirements are unsatisfiable."),
        "VERSION_CONFLICT", "finding",
    ),
    "missing": (
        "#9 1.2   ╰─▶ Because flashinfer-cubin was not found in the package registry and you require it",
        "PACKAGE_MISSING", "finding",
    ),
    "no such version": ("#9 1.2 ERROR: No matching distribution found for flashinfer-cubin==0.6.14", "PACKAGE_MISSING", "finding"),
    "404": ("#9 1.2 HTTP status client error (404 Not Found) for url (https://x/y)", "PACKAGE_MISSING", "finding"),
    "hash": ("#9 9.1   x Hash mismatch for `flashinfer-python==0.6.13`", "WHEEL_HASH", "finding"),
    "tag": ("#14 0.9 warning: Could not find remote branch\n#14 0.9 fatal: Remote branch v0.9 not found in upstream origin",
            "TAG_MISSING", "finding"),
    "compiler": ("#20 80.1 cute/x.hpp:12:2: error: #error requires GCC 12", "BUILD_TOOLCHAIN", "finding"),
    "nvcc": ("#20 80.1 error: -- unsupported GNU version! gcc versions later than 13 are not supported!",
             "BUILD_TOOLCHAIN", "finding"),
    "network": ("#9 30.0 error: Failed to fetch: `https://index.invalid/simple/torch/`\n#9 30.0   Caused by: dns error",
                "NETWORK", "world"),
    "certificate": ("#9 1.0 invalid peer certificate: UnknownIssuer", "NETWORK", "world"),
    "apt": ("#8 9.0 W: Temporary failure resolving 'mirror.invalid'", "NETWORK", "world"),
    "engine": ("ERROR: failed to receive status: rpc error: code = Unavailable desc = error reading from server: EOF",
               "ENGINE_LOST", "world"),
    "memory": ("#9 ERROR: process \"/bin/sh -c x\" did not complete successfully: exit code: 137", "OUT_OF_MEMORY", "world"),
    "base": ("ERROR: failed to solve: nvidia/cuda:9: failed to resolve source metadata: manifest unknown",
             "BASE_IMAGE_MISSING", "world"),
}  # fmt: skip


@pytest.mark.parametrize(("log", "reason", "kind"), LOGS.values(), ids=LOGS.keys())
def test_a_log_gives_its_cause(log: str, reason: str, kind: str) -> None:
    cause = classify_failure(log.splitlines())
    assert (cause.reason, cause.kind) == (reason, kind)
    assert cause.line
    assert cause.line in log


def test_after_a_resolvers_headline_the_explanation_is_on_top() -> None:
    assert classify_failure(LOGS["companion"][0].splitlines()).line.startswith(
        "cause: Because flashinfer-python==0.6.13"
    )


def test_the_first_compiler_error_is_on_top() -> None:
    log = ["#20 1.0 a.cu:1: error: #error requires GCC 12", "#20 2.0 b.cu:1: error: #error requires GCC 12"]
    assert classify_failure(log).line.startswith("a.cu:1")


def test_the_dockerfiles_own_words_are_no_symptoms() -> None:
    log = [
        '#9 [x 1/2] RUN command -v gcc || echo "gcc: not found"',
        "  12 | >>> RUN echo no space left on device",
        " > [x 1/2] RUN echo no space left on device:",
        "#9 0.3 something else went wrong",
        'ERROR: failed to solve: process "/bin/sh -c x" did not complete successfully: exit code: 1',
    ]
    cause = classify_failure(log)
    assert (cause.reason, cause.kind) == ("BUILD_FAILED", "finding")
    assert "did not complete successfully" in cause.line


def test_an_empty_log_is_a_failed_build_without_a_line() -> None:
    assert classify_failure([]).line == ""


def test_steps_that_ran_and_steps_from_the_cache_are_counted() -> None:
    log = """
#1 [internal] load build definition from Dockerfile
#1 DONE 0.0s
#5 [pins 1/3] FROM docker.io/library/base:test
#5 DONE 0.0s
#6 [base 2/4] RUN apt-get update
#6 CACHED
#7 [torch 1/2] COPY --from=pins /a /b
#7 CACHED
#8 [release 2/3] RUN   uv pip install
#8 2.1 Resolved 56 packages
#8 DONE 37.5s
#9 exporting to image
#9 DONE 20.0s
""".splitlines()
    steps = parse_steps(log)
    assert (steps.cached, steps.run, steps.seconds) == (2, 1, {"[release 2/3] RUN uv pip install": 37.5})
