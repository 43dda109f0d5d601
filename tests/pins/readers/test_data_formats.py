"""TOML, YAML, JSON, HCL and lock files."""

from __future__ import annotations

import pytest

from tests.pins.readers.tables import Sample, check_sample, read, sample
from tooling.pins.sites import Role

P, W = "pyproject.toml", ".github/workflows/release.yml"

TOML = [
    sample("list-line", P, '[project]\ndependencies = [\n  "flashinfer_python==0.6.3", # keep 0.6.3 aligned\n  "torch==2.9.1",\n]\n',
           "0.6.3 pin python"),
    sample("several-on-one-line", P, 'srt = ["vllm>=0.6.3.post1,<=0.6.4.post1", "flashinfer==0.1.6", "flashinfer_cubin==0.1.6"]\n',
           "0.1.6 pin python", "0.1.6 pin cubin"),
    sample("marker-and-extra", P, """d = ["flashinfer-python[cu13] == 0.6.13 ; platform_system == 'Linux'"]\n""", "0.6.13 pin python"),
    sample("bound", P, 'd = ["flashinfer-python>=0.3.1,<0.7"]\n', "0.3.1 minimum python", "0.7 minimum python"),
    sample("poetry", P, '[tool.poetry.dependencies]\nflashinfer-python = "0.6.13"\ntorch = "0.6.13"\n', '"0.6.13" pin python'),
    sample("poetry-table", P, '[tool.poetry.dependencies]\nflashinfer-python = { version = "==0.6.13", extras = ["cu13"] }\n',
           "0.6.13 pin python"),
    sample("poetry-caret", P, '[tool.poetry.dependencies]\nflashinfer-python = "^0.6.13"\n', "0.6.13 minimum python"),
    sample("uv-source-tag", P, '[tool.uv.sources]\nflashinfer-python = { git = "https://github.com/flashinfer-ai/flashinfer", tag = "v0.6.13" }\n',
           '"v0.6.13" pin'),
    sample("uv-source-rev", P, '[tool.uv.sources]\nflashinfer-python = { git = "https://github.com/flashinfer-ai/flashinfer", rev = "5243043" }\n',
           '"5243043" use'),
    sample("other-source-at-the-same-tag", P, '[tool.uv.sources]\nx = { git = "https://github.com/a/b", tag = "v0.6.13" }\n'),
    sample("wheel-address", P, 'd = ["flashinfer-python @ https://e.invalid/flashinfer_python-0.6.13-py3-none-any.whl"]\n',
           "0.6.13 pin python"),
    sample("declared-key", "container.toml", 'flashinfer_version = "0.6.13"\n', '"0.6.13" pin'),
    sample("description", P, 'description = "Works with flashinfer-python==0.6.13 and newer ones"\n', "0.6.13 prose python"),
    sample("comment", P, '# flashinfer-python==0.6.13\nx = 1\n', "0.6.13 prose"),
    sample("own-version", P, '[project]\nname = "flashinfer-tools"\nversion = "0.6.13"\n'),
    sample("multi-line-string", P, 'x = """\npip install flashinfer-python==0.6.13\n"""\n', "0.6.13 pin python"),
]  # fmt: skip
YAML = [
    sample("key", "context.yaml", "flashinf_ref: v0.6.13\nnixl_ref: 0.6.13\n", "v0.6.13 pin"),
    sample("camel-case-key", "values.yaml", "image:\n  flashinferVersion: 0.6.11\n  flashinferCudaVersion: 13.0.2\n", "0.6.11 pin"),
    sample("kebab-key", "context.yaml", "vllm:\n  flashinfer-version: '0.6.13' # as in 0.6.13\n", "'0.6.13' pin"),
    sample("workflow-input", W, "on:\n  workflow_dispatch:\n    inputs:\n      flashinfer_version:\n        description: x 1.2.3\n        default: 'v0.6.13'\n",
           "'v0.6.13' pin"),
    sample("env-entry", "pod.yaml", "env:\n- name: FLASHINFER_VERSION\n  value: \"0.6.13\"\n- name: OTHER\n  value: '0.6.13'\n", '"0.6.13" pin'),
    sample("build-args", W, "jobs:\n  a:\n    steps:\n    - with:\n        build-args: |\n          CUDA_VERSION=13.0.2\n          FLASHINFER_VERSION=0.6.13\n",
           "0.6.13 pin"),
    sample("run", W, "a:\n  run: |\n    # 0.6.12 flashinfer-python==0.6.12\n    pip install flashinfer-python==0.6.13 nixl==0.6.13\n",
           "0.6.12 prose", "0.6.13 pin python"),
    sample("bake-set", W, "a:\n  run: docker buildx bake --set *.args.FLASHINFER_VERSION=0.6.14\n", "0.6.14 pin"),
    sample("build-arg", W, "a:\n  run: docker buildx build --build-arg FLASHINFER_VERSION=0.6.14 -f docker/Dockerfile .\n", "0.6.14 pin"),
    sample("checkout-action", W, "steps:\n- uses: actions/checkout@v4\n  with:\n    repository: flashinfer-ai/flashinfer\n    ref: v0.6.13\n- uses: a/b@v4\n  with: {repository: x/y, ref: v0.6.13}\n",
           "v0.6.13 pin"),
    sample("conda", "environment.yml", "dependencies:\n- flashinfer-python=0.6.13\n- pip:\n  - flashinfer-cubin==0.6.13\n  - torch==0.6.13\n",
           "0.6.13 pin python", "0.6.13 pin cubin"),
    sample("expression-default", W, "env:\n  V: ${{ inputs.flashinfer_version || '0.6.13' }}\n", "'0.6.13' pin"),
    sample("default-under-the-key", W, "env:\n  FLASHINFER_VERSION: ${{ inputs.version || '0.6.13' }}\n  X: ${{ inputs.y || '0.6.13' }}\n", "'0.6.13' pin"),
    sample("compose-default", "compose.yaml", "args:\n  FLASHINFER_VERSION: ${FI:-0.6.13}\n", "0.6.13 pin"),
    sample("matrix-of-several", W, "matrix:\n  flashinfer-version: ['0.6.12', '0.6.13']\n", "'0.6.12' use", "'0.6.13' use"),
    sample("list-of-one", W, "matrix:\n  flashinfer-version: ['0.6.13']\n", "'0.6.13' pin"),
    sample("image", "compose.yaml", "image: ghcr.io/x/flashinfer:v0.6.13\n", "v0.6.13 pin"),
    sample("template", "t.yaml", "{% if x %}\nflashinfer_ref: v0.6.13\n{% endif %}\nnixl_ref: v0.6.13\n", "v0.6.13 pin"),
    sample("several-documents-and-an-alias", "t.yaml", "a: &x {flashinfer_version: 0.6.13}\nb: *x\n---\nflashinfer_version: 0.6.13\n",
           "0.6.13 pin", "0.6.13 pin"),
    sample("text", "t.yaml", "note: FlashInfer needs flashinfer-python==0.6.13 at least\n", "0.6.13 prose python"),
]  # fmt: skip
JSON = [
    sample("bake-variable", "versions.json", '{"variable": {"FLASHINFER_VERSION": {"default": "0.6.13"}}}', '"0.6.13" pin'),
    sample("bake-argument", "bake.json", '{"target": {"a": {"args": {"FLASHINFER_VERSION": "0.6.13", "X": "0.6.13"}}}}', '"0.6.13" pin'),
    sample("requirement", "x.json", '["flashinfer-python==0.6.13", "nixl==0.6.13"]', "0.6.13 pin python"),
    sample("package", "x.json", '{"flashinfer-python": "0.6.13"}', '"0.6.13" pin python'),
    sample("broken", "x.json", '{"flashinfer-python": "0.6.13"'),
]  # fmt: skip
HCL = [
    sample("default", "docker-bake.hcl", 'variable "FLASHINFER_VERSION" {\n  # was "0.6.12"\n  default = "0.6.13"\n}\nvariable "X" { default = "0.6.13" }\n',
           '"0.6.13" pin'),
    sample("no-default", "docker-bake.hcl", 'variable "FLASHINFER_VERSION" {}\nvariable "X" { default = "0.6.13" }\n'),
    sample("argument", "docker-bake.hcl", 'target "a" {\n  args = {\n    FLASHINFER_VERSION = "0.6.13" // 0.6.12\n    CUDA = "13.0"\n  }\n}\n',
           '"0.6.13" pin'),
    sample("commented", "docker-bake.hcl", '// FLASHINFER_VERSION = "0.6.13"\n/* FLASHINFER_VERSION = "0.6.13" */\n', "\"0.6.13\" prose"),
]  # fmt: skip
LOCKS = [
    sample("uv", "uv.lock", '[[package]]\nname = "flashinfer-python"\nversion = "0.6.16.post3"\nsource = { registry = "x" }\n',
           '"0.6.16.post3" lock python'),
    sample("pipenv", "Pipfile.lock", '{"default": {"flashinfer-python": {"hashes": ["a"], "version": "==0.6.13"}}}', "0.6.13 lock python"),
    sample("conda", "conda-lock.yml", "package:\n- name: flashinfer-python\n  version: 0.6.13\n", "0.6.13 lock python"),
    sample("pylock", "pylock.toml", '[[packages]]\nname = "flashinfer-python"\nversion = "0.6.13"\n', '"0.6.13" lock python'),
]  # fmt: skip


@pytest.mark.parametrize("item", TOML)
def test_toml_sites(item: Sample) -> None:
    check_sample(item)


@pytest.mark.parametrize("item", YAML)
def test_yaml_sites(item: Sample) -> None:
    check_sample(item)


@pytest.mark.parametrize("item", [*JSON, *HCL, *LOCKS])
def test_sites_in_json_hcl_and_locks(item: Sample) -> None:
    check_sample(item)


def test_two_project_files_are_read_alike() -> None:
    for name in ("pyproject.toml", "pyproject_other.toml"):
        (site,) = read(name, 'd = ["flashinfer_python==0.6.16.post3"]\n')
        assert (site.package, str(site.version)) == ("flashinfer-python", "0.6.16.post3")


def test_a_byte_order_mark_shifts_nothing() -> None:
    for path, text in (("a.yaml", "flashinfer_version: 0.6.13\n"), ("a.json", '{"FLASHINFER_VERSION": "0.6.13"}')):
        (site,) = read(path, "\ufeff" + text)
        assert site.spelling.strip('"') == "0.6.13"


def test_a_key_that_the_settings_name_is_a_pin_in_yaml_and_toml() -> None:
    (yaml_site,) = read("context.yaml", "runtime_image_tag: 1.3.0rc15.post1\n", "runtime_image_tag")
    (toml_site,) = read("context.toml", 'runtime_image_tag = "1.3.0rc15.post1"\n', "runtime_image_tag")
    assert yaml_site.role is toml_site.role is Role.PIN
    assert yaml_site.version == toml_site.version
