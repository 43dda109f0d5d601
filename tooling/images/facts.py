"""What is inside an image, read out of its configuration and file system: distributions, user, tools, secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser

from packaging.utils import canonicalize_name

from tooling.images.credentials import SECRET_FILES, find_credentials, find_file_credentials
from tooling.images.filesystem import Entry, FileSystem, Layer, merge_layers

_DISTRIBUTION = re.compile(r"(?P<place>.*(?:site|dist)-packages)/[^/]+\.(?:dist-info/METADATA|egg-info(?:/PKG-INFO)?)$")
_NVCC = re.compile(rb"Cuda compilation tools, release (\d+\.\d+), V(\d+\.\d+\.\d+)")
_RECORDED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?P<rest>.*)$")
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageConfig:
    """An image's configuration as an engine reports it. `image_id` is the config digest; `history` oldest first."""

    image_id: str
    tags: tuple[str, ...]
    user: str
    env: Mapping[str, str]
    labels: Mapping[str, str]
    history: tuple[str, ...]
    layer_digests: tuple[str, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One installed distribution: normalised name, version as its metadata has it, and the folder that holds it."""

    name: str
    version: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Whom a container runs as. `uid` None: the name is not in the image's passwd file."""

    name: str
    uid: int | None
    gids: tuple[int, ...]
    home: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """Everything that the checks look at. `credentials` say what kind lies where; they never repeat it.

    `nvcc` is the release under `$CUDA_HOME/bin`, such as `13.0`; `recorded_hashes` are the wheel hashes that the
    installer was made to verify, by package name; `python` and `system` are None where the image does not say.
    """

    config: ImageConfig
    distributions: tuple[Distribution, ...]
    user: User
    nvcc: str | None
    has_ninja: bool
    cache_folders: Mapping[str, bool]
    python: str | None
    system: str | None
    file_variables: Mapping[str, str]
    credentials: tuple[str, ...]
    recorded_hashes: Mapping[str, frozenset[str]]

    @property
    def environment_place(self) -> str | None:
        """The folder of the image's main environment, from VIRTUAL_ENV."""
        return self.config.env.get("VIRTUAL_ENV", "").strip("/") or None

    def main_distributions(self) -> dict[str, Distribution]:
        """By name, those of the main environment; of the whole image where it names none."""
        place = self.environment_place
        return {item.name: item for item in self.distributions if place is None or item.place.startswith(f"{place}/")}


def read_facts(config: ImageConfig, layers: Sequence[Layer]) -> ImageFacts:
    """The facts. `layers` are in order, the lowest first."""
    system = merge_layers(layers)
    user = _user(config.user, system)
    cuda_home = config.env.get("CUDA_HOME", "/usr/local/cuda")
    return ImageFacts(
        config=config,
        distributions=tuple(_distributions(system)),
        user=user,
        nvcc=_nvcc_release(system.resolve(f"{cuda_home}/bin/nvcc")),
        has_ninja=any(_is_program(system.resolve(f"{folder}/ninja")) for folder in _path(config)),
        cache_folders={
            folder: user.uid is not None and system.can_write(folder, user.uid, user.gids)
            for folder in _cache_folders(config, user)
        },
        python=_python(system, config),
        system=_system(system),
        file_variables=_file_variables(system),
        credentials=tuple(dict.fromkeys([*_config_credentials(config), *_layer_credentials(layers)])),
        recorded_hashes=_recorded_hashes(system.text("/opt/pins/flashinfer.txt") or ""),
    )


def _distributions(system: FileSystem) -> Iterator[Distribution]:
    for entry in system.files():
        found = _DISTRIBUTION.match(entry.path)
        if found:
            headers = HeaderParser().parsestr((entry.content or b"").decode("utf-8", "replace"))
            name, version = headers.get("Name", ""), headers.get("Version", "")
            if name and version:
                yield Distribution(name=canonicalize_name(name), version=version.strip(), place=found["place"])


def _user(text: str, system: FileSystem) -> User:
    """The user of a `USER` instruction; empty is root. A group that is given stands alone."""
    name, _, group = (text or "0").partition(":")
    row = next((row for row in _rows(system, "/etc/passwd") if len(row) > 5 and name in {row[0], row[2]}), None)
    groups = [row for row in _rows(system, "/etc/group") if len(row) > 3]
    uid = int(row[2]) if row else int(name) if name.isdigit() else None
    own = group or (row[3] if row else "0")
    gids = {
        int(item[2])
        for item in groups
        if own in {item[0], item[2]} or (row and not group and row[0] in item[3].split(","))
    }
    gids |= {int(own)} if own.isdigit() else set()
    return User(name=row[0] if row else name, uid=uid, gids=tuple(sorted(gids)), home=row[5] if row else "/")


def _rows(system: FileSystem, path: str) -> list[list[str]]:
    rows = [line.split(":") for line in (system.text(path) or "").splitlines()]
    return [row for row in rows if len(row) > 3 and row[2].isdigit()]


def _cache_folders(config: ImageConfig, user: User) -> Iterator[str]:
    """Where FlashInfer, vLLM and Triton write for that user, by their own variables or under its home."""
    home = config.env.get("HOME", user.home)
    cache = config.env.get("XDG_CACHE_HOME") or f"{home}/.cache"
    yield f"{config.env.get('FLASHINFER_WORKSPACE_BASE') or home}/.cache/flashinfer"
    yield config.env.get("VLLM_CACHE_ROOT") or f"{cache}/vllm"
    yield config.env.get("TRITON_CACHE_DIR") or f"{home}/.triton"


def _nvcc_release(entry: Entry | None) -> str | None:
    found = _NVCC.search(entry.content) if entry is not None and entry.content else None
    return found[1].decode() if found and _is_program(entry) else None


def _is_program(entry: Entry | None) -> bool:
    return entry is not None and entry.kind == "file" and bool(entry.mode & 0o111)


def _path(config: ImageConfig) -> list[str]:
    return [folder for folder in config.env.get("PATH", _DEFAULT_PATH).split(":") if folder]


def _python(system: FileSystem, config: ImageConfig) -> str | None:
    """The main environment's Python, from its pyvenv.cfg (PEP 405)."""
    text = system.text(f"{config.env.get('VIRTUAL_ENV', '')}/pyvenv.cfg") or ""
    found = re.search(r"(?m)^version(?:_info)?\s*=\s*(\d+\.\d+(?:\.\d+)?)", text)
    return found[1] if found else None


def _system(system: FileSystem) -> str | None:
    """The distribution and its release, such as `ubuntu 24.04` (os-release)."""
    text = system.text("/etc/os-release") or system.text("/usr/lib/os-release") or ""
    fields = {key: value.strip('"') for key, _, value in (line.partition("=") for line in text.splitlines())}
    return f"{fields['ID']} {fields.get('VERSION_ID', '')}".strip() if "ID" in fields else None


def _file_variables(system: FileSystem) -> dict[str, str]:
    """Variables that login shells get from files."""
    places = [item for item in system.files() if re.match(r"etc/(?:environment|profile|profile\.d/)", item.path)]
    text = "\n".join((item.content or b"").decode("utf-8", "replace") for item in places)
    return dict(re.findall(r"(?m)^\s*(?:export\s+)?([A-Za-z_]\w*)=[\"']?([^\"'\n]*)", text))


def _config_credentials(config: ImageConfig) -> Iterator[str]:
    for number, step in enumerate(config.history, start=1):
        yield from (f"{kind} in step {number} of the history" for kind in find_credentials(step))
    for name, value in config.env.items():
        yield from (f"{kind} in the environment variable {name}" for kind in find_credentials(f"{name}={value}"))
    for name, value in config.labels.items():
        yield from (f"{kind} in the label {name}" for kind in find_credentials(value))


def _layer_credentials(layers: Sequence[Layer]) -> Iterator[str]:
    """Every layer is looked at by itself: what a later one removes can still be pulled."""
    for number, layer in enumerate(layers, start=1):
        for entry in layer.entries:
            if entry.content is not None and SECRET_FILES.search(entry.path):
                text = entry.content.decode("utf-8", "replace")
                kinds = find_file_credentials(entry.path, text)
                yield from (f"{kind} in /{entry.path} of layer {number}" for kind in kinds)


def _recorded_hashes(text: str) -> dict[str, frozenset[str]]:
    """The `--hash` options of the lines that FlashInfer was installed from, by package."""
    found: dict[str, frozenset[str]] = {}
    for line in text.splitlines():
        match = _RECORDED.match(line.strip())
        hashes = frozenset(re.findall(r"--hash=sha256:([0-9a-f]{64})", line))
        if match and hashes:
            found[canonicalize_name(match["name"])] = hashes
    return found
