"""The digest over all pins changes with a pin and with nothing else."""

from __future__ import annotations

import hashlib

import pytest

from tooling.pins.identity import pins_sha256
from tooling.pins.requirements import parse_requirements

VARIABLES = {"FLASHINFER_VERSION": "0.6.13", "CUDA_VERSION": "13.0.2"}
REQUIREMENTS = 'flashinfer-python==0.6.13\nx[a,b]>=1,<2 ; python_version > "3"\nz @ https://h/z.whl\n./local  dir\n'


def digest(variables: dict[str, str] = VARIABLES, requirements: str = REQUIREMENTS) -> str:
    return pins_sha256(variables, parse_requirements(requirements))


def test_the_digest_is_over_canonical_json() -> None:
    canonical = (
        '{"requirements":["./local dir","flashinfer-python==0.6.13",'
        '"x[a,b]<2,>=1 ; python_version > \\"3\\"","z @ https://h/z.whl"],'
        '"variables":{"CUDA_VERSION":"13.0.2","FLASHINFER_VERSION":"0.6.13"}}'
    )
    assert digest() == hashlib.sha256(canonical.encode()).hexdigest()


@pytest.mark.parametrize(
    "requirements",
    [
        "# comment\n" + REQUIREMENTS.replace("\n", "\r\n"),
        "\n".join(reversed(REQUIREMENTS.splitlines())),
        REQUIREMENTS.replace("flashinfer-python", "FlashInfer_Python"),
        REQUIREMENTS.replace("[a,b]>=1,<2", "[B, a] <2, >=1"),
        "--extra-index-url https://h/whl\n" + REQUIREMENTS,
        REQUIREMENTS.replace("flashinfer-python==0.6.13", "flashinfer-python==0.6.13 --hash=sha256:ab"),
    ],
    ids=["comments and line ends", "order", "case and underscores", "order of extras", "options", "hashes"],
)
def test_layout_does_not_count(requirements: str) -> None:
    assert digest(requirements=requirements) == digest()


@pytest.mark.parametrize(
    "requirements",
    [
        REQUIREMENTS.replace("0.6.13", "0.6.12"),
        REQUIREMENTS.replace("[a,b]", "[a]"),
        REQUIREMENTS.replace('"3"', '"4"'),
        REQUIREMENTS.replace("z.whl", "y.whl"),
        REQUIREMENTS.replace("./local", "./other"),
        REQUIREMENTS + "more==1\n",
        REQUIREMENTS + REQUIREMENTS,
    ],
    ids=["version", "extra", "marker", "address", "folder", "one more", "twice"],
)
def test_every_requirement_counts(requirements: str) -> None:
    assert digest(requirements=requirements) != digest()


def test_every_variable_counts_and_their_order_does_not() -> None:
    assert digest(dict(reversed(VARIABLES.items()))) == digest()
    assert len({digest({**VARIABLES, name: "9"}) for name in [*VARIABLES, "NEW"]} | {digest()}) == 4
