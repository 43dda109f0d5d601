"""A server in a container of an image, through the Docker SDK."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import DeviceRequest

import docker
from tooling.edges.serving.leash import Leash
from tooling.edges.serving.reaping import GRACE_S
from tooling.errors import EdgeError, InputError
from tooling.gsm8k.causes import Death, read_death

LABEL = "tooling.gsm8k.server"
_ENGINE_FAULTS = (DockerException, requests.RequestException, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """An image as the engine knows it: its config digest, and what registries call it."""

    id: str
    manifest_digest: str | None


class ContainerServer:
    """A server in a container, which is stopped and started again over the same files; `close` removes it.

    The container shares the host's network (the port is the host's) and its IPC, as engines with several ranks need.
    """

    def __init__(
        self,
        image: str,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str],
        env: Mapping[str, str],
        mounts: Sequence[str],
        log_path: Path,
        grace_s: float = GRACE_S,
    ) -> None:
        self._image, self._argv, self._env = image, list(argv), dict(env)
        self._mounts, self._log_path, self._grace_s = list(mounts), log_path, grace_s
        self._environ = dict(environ)
        self._client = _connect()
        self._container: Any = None
        self._logger: threading.Thread | None = None
        self._leash: Leash | None = None

    def load_facts(self) -> ImageFacts:
        """Raises InputError if the engine has no such image (it is not pulled)."""
        try:
            found = self._client.images.get(self._image)
        except ImageNotFound as cause:
            raise InputError(
                f"--image {self._image}: the engine has no such image",
                hint="build it with `nox -s image`, or pull it",
                reason="NO_IMAGE",
            ) from cause
        except _ENGINE_FAULTS as cause:
            raise _fault("the image cannot be looked at", cause) from cause
        digests = [str(digest).partition("@")[2] for digest in found.attrs.get("RepoDigests") or []]
        return ImageFacts(id=str(found.id), manifest_digest=digests[0] if digests else None)

    def start(self) -> None:
        """Creates the container, or starts it again; its output is appended to the log. Raises EdgeError."""
        try:
            if self._container is None:
                self._container = self._client.containers.create(self._image, **self._options())
                self._leash = Leash("container", str(self._container.id), environ=self._environ)
            since = time.time()
            self._container.start()
            # A container that starts again has its earlier lines too; they are in the file already.
            stream = self._container.logs(stream=True, follow=True, since=since)
            self._logger = threading.Thread(target=self._copy_log, args=(stream,), daemon=True)
            self._logger.start()
        except _ENGINE_FAULTS as cause:
            raise _fault(f"{self._image}: the server's container cannot be started", cause) from cause

    def poll(self) -> Death | None:
        """How the container's main process ended, or None while it lives. Raises EdgeError without an engine."""
        if self._container is None:
            return None
        try:
            self._container.reload()
        except NotFound:
            return Death(code=137, signal_name="SIGKILL")
        except _ENGINE_FAULTS as cause:
            raise _fault("the engine stopped answering", cause) from cause
        state = self._container.attrs["State"]
        if state.get("Status") not in {"exited", "dead"}:
            return None
        return read_death(int(state["ExitCode"]), container=True, out_of_memory=bool(state.get("OOMKilled")))

    def find_flashinfer(self, package: str) -> str | None:
        """The version of that distribution in the running container, or None if nobody there can tell."""
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        for python in ("python3", "python"):
            with suppress(*_ENGINE_FAULTS):
                done = self._container.exec_run([python, "-c", code], demux=True)
                if done.exit_code == 0 and done.output[0]:
                    return str(done.output[0].decode().strip())
        return None

    def end(self) -> None:
        """Stops the container, by force after a grace; its files stay."""
        if self._container is None:
            return
        with suppress(NotFound):
            self._container.stop(timeout=round(self._grace_s))
        if self._logger is not None:
            self._logger.join(timeout=5)

    def close(self) -> None:
        """Removes the container with its files. Raises EdgeError if the engine does not."""
        if self._container is not None:
            try:
                self._container.remove(force=True, v=True)
            except NotFound:
                pass
            except _ENGINE_FAULTS as cause:
                raise _fault("the server's container cannot be removed", cause) from cause
            self._container = None
        if self._logger is not None:
            self._logger.join(timeout=5)
        if self._leash is not None:
            self._leash.release()
        self._client.close()

    def _options(self) -> dict[str, Any]:
        gpus = [DeviceRequest(count=-1, capabilities=[["gpu"]])] if self._has_gpu_runtime() else []
        return {
            "command": self._argv,
            "entrypoint": [],
            "environment": {**self._env, "PYTHONUNBUFFERED": "1"},
            "network_mode": "host",
            "ipc_mode": "host",
            "init": True,
            "labels": {LABEL: "1"},
            "volumes": self._mounts,
            "device_requests": gpus,
        }

    def _has_gpu_runtime(self) -> bool:
        info = self._client.info()
        return "nvidia" in (info.get("Runtimes") or {}) or bool(info.get("DiscoveredDevices"))

    def _copy_log(self, stream: Any) -> None:
        try:
            with suppress(*_ENGINE_FAULTS, ValueError), self._log_path.open("ab", buffering=0) as log:
                for chunk in stream:
                    log.write(chunk)
        finally:
            stream.close()


def _connect() -> Any:
    try:
        client = docker.from_env()
    except _ENGINE_FAULTS as cause:
        raise _no_engine(cause) from cause
    try:
        client.ping()
    except _ENGINE_FAULTS as cause:
        client.close()
        raise _no_engine(cause) from cause
    return client


def _no_engine(cause: Exception) -> EdgeError:
    return _fault("no Docker engine answers", cause, hint="is the engine running, and may you use it?")


def _fault(what: str, cause: Exception, *, hint: str = "") -> EdgeError:
    said = cause.explanation if isinstance(cause, APIError) and cause.explanation else str(cause)
    return EdgeError(f"{what}: {' '.join(str(said).split())[:300]}", hint=hint, reason="NO_ENGINE")
