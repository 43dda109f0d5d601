"""The proof on made-up images: every rule passes on a good one and finds what is wrong with a bad one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.images.test_filesystem import entry, layer
from tooling.edges.packaged_data import load_library
from tooling.findings import Severity
from tooling.images.checks import Expectation, check_image, measured_versions
from tooling.images.facts import ImageConfig, ImageFacts, read_facts
from tooling.images.filesystem import Entry
from tooling.images.labels import make_labels
from tooling.pins.requirements import parse_requirements

SITE = "opt/venv/lib/python3.12/site-packages"
PINS = {"FLASHINFER_VERSION": "0.6.13", "CUDA_VERSION": "13.0.2", "UBUNTU_VERSION": "24.04", "PYTHON_VERSION": "3.12"}
REQUIREMENTS = "flashinfer-python==0.6.13\nflashinfer-cubin==0.6.13\ntorch==2.11.0\nnvidia-cutlass-dsl[cu13]==4.5.2\n"
NVCC = "..Cuda compilation tools, release 13.0, V13.0.88.."
DIGEST = "a" * 64
WANTED = Expectation(
    library=load_library(), variables=PINS, requirements=parse_requirements(REQUIREMENTS), pins_sha256="f" * 64
)
GOOD: dict[str, str] = {
    "flashinfer-python": "0.6.13", "flashinfer-cubin": "0.6.13", "torch": "2.11.0+cu130", "nvidia-cutlass-dsl": "4.5.2",
}  # fmt: skip


def dist(name: str, version: str, place: str = SITE) -> Entry:
    return entry(
        f"{place}/{name.replace('-', '_')}-{version}.dist-info/METADATA", text=f"Name: {name}\nVersion: {version}\n"
    )


def facts(
    installed: dict[str, str] = GOOD, *more: Entry, without: tuple[str, ...] = (), user: str = "10001:10001",
    env: dict[str, str] | None = None, labels: dict[str, str] | None = None, history: tuple[str, ...] = (),
) -> ImageFacts:  # fmt: skip
    entries = [
        entry("etc", "folder", mode=0o755), entry("home", "folder", mode=0o755),
        entry("etc/passwd", text="root:x:0:0::/root:/bin/sh\nengine:x:10001:10001::/home/engine:/bin/sh\n"),
        entry("etc/group", text="root:x:0:\nengine:x:10001:\n"),
        entry("etc/os-release", text='ID=ubuntu\nVERSION_ID="24.04"\n'),
        entry("home/engine", "folder", mode=0o755, uid=10001, gid=10001),
        entry("usr/local/cuda", "link", link="cuda-13.0"),
        entry("usr/local/cuda-13.0/bin/nvcc", mode=0o755, text=NVCC),
        entry("opt/venv/bin/ninja", mode=0o755),
        entry("opt/venv/pyvenv.cfg", text="version = 3.12.3\n"),
        *(dist(name, version) for name, version in installed.items()),
        *more,
    ]  # fmt: skip
    base = {"PATH": "/opt/venv/bin:/usr/bin", "VIRTUAL_ENV": "/opt/venv", "CUDA_HOME": "/usr/local/cuda",
            "CUDA_VERSION": "13.0.2"}  # fmt: skip
    made = make_labels(PINS, load_library(), target="release", pins_sha256="f" * 64, commit=None, source=None,
                       created=None, base_image=None)  # fmt: skip
    config = ImageConfig(
        image_id="sha256:1", tags=(), user=user, env={**base, **(env or {})}, labels=made if labels is None else labels,
        history=history, layer_digests=(), size_bytes=1,
    )  # fmt: skip
    return read_facts(config, [layer(*(item for item in entries if item.path not in without))])


def reasons(found: ImageFacts, wanted: Expectation = WANTED) -> list[str]:
    return [item.reason for item in check_image(found, wanted) if item.severity is Severity.ERROR]


def test_a_good_image_passes() -> None:
    assert reasons(facts()) == []
    assert measured_versions(facts(), WANTED)["torch"] == "2.11.0+cu130"


BAD = {
    "older python": (facts({**GOOD, "flashinfer-python": "0.6.12"}), ["IMAGE_SKEW"]),
    "stale cubin": (facts({**GOOD, "flashinfer-cubin": "0.6.8.post1"}), ["IMAGE_SKEW"]),
    "post release": (facts({**GOOD, "flashinfer-python": "0.6.13.post1"}), ["IMAGE_SKEW"]),
    "stale cubin elsewhere": (facts(GOOD, dist("flashinfer-cubin", "0.6.8.post1", "usr/lib/python3/dist-packages")),
                              ["IMAGE_SKEW"]),
    "jit-cache of another CUDA": (facts({**GOOD, "flashinfer-jit-cache": "0.6.13+cu129"}), ["IMAGE_SKEW"]),
    "older jit-cache that no file names": (facts({**GOOD, "flashinfer-jit-cache": "0.6.11.post3+cu130"}), ["IMAGE_SKEW"]),
    "source tree": (facts({**GOOD, "flashinfer-python": "0.0.0+unknown"}), ["CANNOT_VERIFY"]),
    "no version": (facts({**GOOD, "flashinfer-python": "main"}), ["CANNOT_VERIFY"]),
    "no cubin": (facts({name: version for name, version in GOOD.items() if "cubin" not in name}), ["IMAGE_SKEW"]),
    "older torch": (facts({**GOOD, "torch": "2.10.0+cu130"}), ["IMAGE_SKEW"]),
    "no companion": (facts({name: version for name, version in GOOD.items() if "cutlass" not in name}), ["IMAGE_SKEW"]),
    "env over arg": (facts(env={"FLASHINFER_VERSION": "0.6.1"}), ["ENV_OVER_ARG"]),
    "base of another CUDA": (facts(env={"CUDA_VERSION": "12.9.1"}), ["ENV_OVER_ARG"]),
    "bypass": (facts(env={"FLASHINFER_DISABLE_VERSION_CHECK": "1"}), ["BYPASS"]),
    "bypass in a profile": (facts(GOOD, entry("etc/profile.d/x.sh", text="export FLASHINFER_DISABLE_VERSION_CHECK=1\n")),
                            ["BYPASS"]),
    "root by default": (facts(user=""), ["ROOT_USER"]),
    "root by name": (facts(user="root"), ["ROOT_USER"]),
    "unknown user": (facts(user="nobody-here"), ["ROOT_USER", *["CACHE_NOT_WRITABLE"] * 3]),
    "credentials in the history": (facts(history=("RUN x https://me:hunter2@host/",)), ["CREDENTIALS"]),
    "credentials in a file": (facts(GOOD, entry("root/.netrc", text="machine h login m password p")), ["CREDENTIALS"]),
    "no nvcc": (facts(without=("usr/local/cuda-13.0/bin/nvcc",)), ["NO_NVCC"]),
    "pip's nvcc only": (facts(GOOD, entry("opt/venv/bin/nvcc", mode=0o755, text=NVCC),
                              without=("usr/local/cuda-13.0/bin/nvcc",)), ["NO_NVCC"]),
    "another nvcc": (facts(GOOD, entry("usr/local/cuda-13.0/bin/nvcc", mode=0o755, text=NVCC.replace("13.0", "12.9"))),
                     ["IMAGE_SKEW"]),
    "no ninja": (facts(without=("opt/venv/bin/ninja",)), ["NO_NINJA"]),
    "cache of root's": (facts(env={"FLASHINFER_WORKSPACE_BASE": "/home"}), ["CACHE_NOT_WRITABLE"]),
    "another python": (facts(GOOD, entry("opt/venv/pyvenv.cfg", text="version = 3.10.1\n")), ["IMAGE_SKEW"]),
    "no label": (facts(labels={}), ["NO_LABEL"]),
}  # fmt: skip


@pytest.mark.parametrize(("found", "expected"), BAD.values(), ids=BAD.keys())
def test_a_bad_image_is_found(found: ImageFacts, expected: list[str]) -> None:
    assert reasons(found) == expected


@pytest.mark.parametrize("version", ["0.6.13+cu130", "0.6.13", "0.6.13+g1234"])
def test_a_local_label_of_the_images_own_cuda_is_no_mismatch(version: str) -> None:
    assert reasons(facts({**GOOD, "flashinfer-jit-cache": version})) == []


def test_labels_of_other_pins_or_another_version_are_found() -> None:
    labels = dict(facts().config.labels)
    assert reasons(facts(labels={**labels, "io.flashinfer-pin-pipeline.pins-sha256": "0" * 64})) == ["LABEL_SKEW"]
    assert reasons(facts(labels={**labels, "org.opencontainers.image.version": "0.6.12-cu13.0.2"})) == ["LABEL_SKEW"]


def test_an_image_that_others_built_needs_no_label_of_ours() -> None:
    assert reasons(facts(labels={}), replace(WANTED, is_ours=False)) == []


def test_the_nightly_image_records_torch_without_comparing_it() -> None:
    found, wanted = facts({**GOOD, "torch": "2.12.0.dev20261101+cu130"}), replace(WANTED, is_nightly=True)
    assert reasons(found, wanted) == []
    assert any(item.reason == "RECORDED" for item in check_image(found, wanted))


def test_what_was_left_out_on_demand_is_a_warning_that_stays_in_the_record() -> None:
    found = facts({name: version for name, version in GOOD.items() if name != "torch"})
    (warning,) = [
        item
        for item in check_image(found, replace(WANTED, left_out=frozenset({"torch"})))
        if item.severity is Severity.WARNING
    ]
    assert warning.reason == "LEFT_OUT"
    assert reasons(found) == ["IMAGE_SKEW"]


def test_python_is_compared_on_the_pinned_base_only() -> None:
    found = facts(GOOD, entry("opt/venv/pyvenv.cfg", text="version = 3.11.2\n"),
                  entry("etc/os-release", text='ID=debian\nVERSION_ID="12"\n'))  # fmt: skip
    assert reasons(found) == []
    assert any(item.reason == "NOT_COMPARED" for item in check_image(found, WANTED))


RECORDED = {"flashinfer_python-0.6.13-py3-none-any.whl": DIGEST, "flashinfer_python-0.6.12-py3-none-any.whl": "b" * 64}


@pytest.mark.parametrize(
    ("line", "hashes", "expected"),
    [
        (f"flashinfer-python==0.6.13 --hash=sha256:{DIGEST}", RECORDED, []),
        (f"flashinfer-python==0.6.13 --hash=sha256:{'b' * 64}", RECORDED, ["WHEEL_HASH"]),
        (f"flashinfer-python==0.6.13 --hash=sha256:{DIGEST} --hash=sha256:{'c' * 64}", RECORDED, ["WHEEL_HASH"]),
        ("flashinfer-python==0.6.13", RECORDED, []),
        ("flashinfer-python==0.6.13", {}, []),
    ],
    ids=["same", "another release's", "one too many", "image says nothing", "nothing recorded"],
)
def test_verified_hashes_are_those_that_the_bump_recorded(
    line: str, hashes: dict[str, str], expected: list[str]
) -> None:
    found = facts(GOOD, entry("opt/pins/flashinfer.txt", text=line + "\n"))
    assert reasons(found, replace(WANTED, hashes=hashes)) == expected


def test_what_could_not_be_compared_is_said() -> None:
    notes = [item.detail for item in check_image(facts(), WANTED) if item.reason == "HASH_NOT_CHECKED"]
    assert notes == ["wheel hashes of flashinfer-cubin, flashinfer-python are not checked: the bump recorded none."]


def test_a_numeric_user_without_an_entry_has_the_groups_of_root_as_docker_gives_it() -> None:
    assert facts(user="4242").user.gids == (0,)
    assert facts(user="engine").user.uid == 10001
    assert facts(user="10001:0").user.gids == (0,)
