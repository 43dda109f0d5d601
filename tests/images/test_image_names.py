"""Texts that can name an image, and texts that cannot."""

from __future__ import annotations

import pytest

from tooling.images.image_names import is_image_name

GOOD = (
    "ubuntu", "nvidia/cuda:13.0.2-devel-ubuntu22.04", "localhost:5000/a/b__c:T_1.x", "Registry.Example:443/a",
    "[fd00::1]:5000/a", "a/b@sha256:" + "0a" * 32, "a:tag@sha256:" + "0a" * 32, "sha256:" + "0a" * 32, "0a1b2c3d4e5f",
)  # fmt: skip
BAD = (
    "",
    "bad name!",
    "Upper",
    "a/Upper",
    "a:",
    ":tag",
    "a//b",
    "-a",
    "a:.tag",
    "a@sha256:12",
    "https://host/a",
    "a\n",
)


@pytest.mark.parametrize("text", GOOD)
def test_a_name_that_docker_takes_is_an_image_name(text: str) -> None:
    assert is_image_name(text)


@pytest.mark.parametrize("text", BAD)
def test_a_name_that_docker_refuses_is_none(text: str) -> None:
    assert not is_image_name(text)
