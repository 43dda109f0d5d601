"""The Docker engine, through the Docker SDK: is it there, what does it have, names of images. Starts no container."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tooling.edges.environment import load_environment
from tooling.errors import EdgeError, InputError
from tooling.images.facts import ImageConfig

if TYPE_CHECKING:
    from docker import DockerClient

TIMEOUT_S = 600
"""An old engine writes an image of 8 GB to its disk before it sends the first byte: 90 s on a busy machine."""


@contextmanager
def connect() -> Iterator[DockerClient]:
    """A client of the engine that docker's own command line would use: DOCKER_HOST, else the docker context.

    Raises:
        EdgeError: no engine answers; also when it goes away while the block runs.
    """
    import docker.errors  # noqa: PLC0415  # as above
    from requests.exceptions import RequestException  # noqa: PLC0415  # as above

    import docker  # noqa: PLC0415  # costs 200 ms, and only `image` needs it

    client = None
    try:
        client = _open()
        client.ping()
        yield client
    except docker.errors.NotFound as cause:
        raise InputError(f"the engine has no such image: {cause.explanation}", reason="NO_IMAGE") from cause
    except (docker.errors.DockerException, RequestException, ConnectionError) as cause:
        first_line = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
        full = "no space left on device" in str(cause)
        raise EdgeError(
            f"the Docker engine does not answer: {first_line}" if not full else "the engine's disk is full",
            hint="start it (`systemctl start docker`, or `dockerd`), or point DOCKER_HOST at one",
            reason="INFRA_DISK" if full else "NO_ENGINE",
        ) from cause
    finally:
        if client is not None:
            client.close()


def _open() -> DockerClient:
    from docker.context import ContextAPI  # noqa: PLC0415  # as above

    import docker  # noqa: PLC0415  # as above

    environ = load_environment()
    if environ.get("DOCKER_HOST"):
        return docker.from_env(timeout=TIMEOUT_S)
    context = ContextAPI.get_context(environ.get("DOCKER_CONTEXT") or None)
    if context is None:
        raise EdgeError(f"there is no docker context {environ.get('DOCKER_CONTEXT')}", reason="NO_ENGINE")
    return docker.DockerClient(
        base_url=context.Host,
        tls=getattr(context, "TLSConfig", None) or False,
        timeout=TIMEOUT_S,
        use_ssh_client=str(context.Host).startswith("ssh://"),
    )


def load_config(client: DockerClient, name: str) -> ImageConfig:
    """An image's configuration and history. Raises InputError (in `connect`) if the engine does not have it."""
    image = client.images.get(name)
    config: Mapping[str, Any] = image.attrs.get("Config") or {}
    pairs = (item.partition("=") for item in config.get("Env") or ())
    steps = reversed(image.history())
    return ImageConfig(
        image_id=str(image.id),
        tags=tuple(image.tags),
        user=str(config.get("User") or ""),
        env={name: value for name, _, value in pairs},
        labels=dict(config.get("Labels") or {}),
        history=tuple(" ".join(filter(None, (step.get("CreatedBy"), step.get("Comment")))) for step in steps),
        layer_digests=tuple(image.attrs.get("RootFS", {}).get("Layers") or ()),
        size_bytes=int(image.attrs.get("Size") or 0),
    )


def find_image(client: DockerClient, name: str) -> str | None:
    """The id of the image of that name, None if the engine has none."""
    import docker.errors  # noqa: PLC0415  # loaded by connect already

    try:
        return str(client.images.get(name).id)
    except (docker.errors.ImageNotFound, docker.errors.NullResource):
        return None


def restore_tags(client: DockerClient, before: Mapping[str, str | None]) -> list[str]:
    """Gives every name back to the image that had it; a name that nobody had is removed. Returns those changed."""
    changed = []
    for name, image_id in before.items():
        if find_image(client, name) == image_id:
            continue
        changed.append(name)
        if image_id is None:
            client.images.remove(name, noprune=False)
        else:
            client.images.get(image_id).tag(name)
    return changed


def free_disk(client: DockerClient) -> tuple[str, int | None]:
    """The engine's data folder and its free bytes; None where that folder is not on this machine."""
    folder = str(client.info().get("DockerRootDir") or "/var/lib/docker")
    if not Path(folder).is_dir() or not client.api.base_url.startswith(("http+docker://", "unix")):
        return folder, None
    return folder, shutil.disk_usage(folder).free


def engine_version(client: DockerClient) -> str:
    return str(client.version().get("Version", "unknown"))
