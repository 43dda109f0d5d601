"""One run of the smoke in a container of an image with all GPUs, through the Docker SDK; it is always removed.

Files are copied in and out, so that an engine on another machine serves as well and the image stays as it is.
"""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Self

from docker.errors import APIError, DockerException, ImageNotFound, NotFound, NullResource
from docker.types import DeviceRequest
from requests.exceptions import RequestException

from tooling.edges.serving.leash import Leash
from tooling.errors import EdgeError
from tooling.smoke.container_errors import Cause, read_engine_message
from tooling.smoke.container_plan import find_manifest_digest

if TYPE_CHECKING:
    from docker import DockerClient

LABEL = "tooling.smoke.container"
SHARED_MEMORY = "8g"
"""Docker's own 64 MB are too few for ranks that hand tensors to each other; what is not used costs nothing."""

_LAST_LINES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundImage:
    """An image as the engine knows it: the same digests as the image stage's record has."""

    image_id: str
    manifest_digest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the container's process came out. `exit_status` None: it was stopped at the deadline."""

    exit_status: int | None
    stdout: bytes
    log: str
    out_of_memory: bool = False


class RefusedError(EdgeError):
    """The engine does not start the container; `cause` says why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.sentence, hint=cause.hint, reason=cause.reason)
        self.cause = cause


def look_up(client: DockerClient, tag: str) -> FoundImage:
    """Raises EdgeError (`NO_IMAGE`) if the engine has no such image; nothing is pulled."""
    try:
        image = client.images.get(tag)
    except (ImageNotFound, NullResource) as cause:
        raise EdgeError(
            f"--image {tag}: the engine has no such image",
            hint="build it with `nox -s image`, or pull it",
            reason="NO_IMAGE",
        ) from cause
    return FoundImage(
        image_id=str(image.id), manifest_digest=find_manifest_digest(tag, image.attrs.get("RepoDigests") or ())
    )


class SmokeContainer:
    """A container of that image, made on entry and removed on leaving, also if this process is killed.

    Raises:
        RefusedError: on entry and in `run`, if the engine does not make or start it.
    """

    def __init__(
        self, client: DockerClient, image_id: str, command: Sequence[str], *, network: str, environ: Mapping[str, str]
    ) -> None:
        self._client, self._image_id, self._command = client, image_id, list(command)
        self._network, self._environ = network, environ
        self._name = f"pin-smoke-{uuid.uuid4().hex}"
        self._container: Any = None
        self._leash: Leash | None = None

    def __enter__(self) -> Self:
        # The name is ours, so that the leash knows it before there is a container that could be left behind.
        self._leash = Leash("engine-container", self._name, environ=self._environ)
        try:
            self._container = self._client.containers.create(self._image_id, **self._options())
        except APIError as cause:
            self._leash.release()
            raise RefusedError(read_engine_message(str(cause.explanation))) from cause
        return self

    def __exit__(self, *_: object) -> None:
        """An engine that does not answer keeps the leash, which tries again when this process ends."""
        try:
            self._container.remove(force=True, v=True)
        except APIError as cause:
            # 404: gone; 409: somebody else's removal is on its way.
            if cause.status_code not in {404, 409}:
                raise
        if self._leash is not None:
            self._leash.release()

    def put(self, archive: IO[bytes]) -> None:
        """Copies an archive's files into the container, from its root."""
        with _still_there():
            self._container.put_archive("/", archive)

    def take(self, folder: str) -> Iterable[bytes]:
        """An archive of that folder of the container, in pieces; also of one that has ended."""
        with _still_there():
            chunks: Iterable[bytes] = self._container.get_archive(folder)[0]
        return chunks

    def run(self, say: Callable[[str], None], *, limit_s: float) -> Ended:
        """Starts it and says each line of its standard error at once, until it ends or the time is up."""
        with _still_there():
            stream = self._client.api.attach(self._container.id, stdout=True, stderr=True, stream=True, demux=True)
        output = _Output(say)
        try:
            self._container.start()
            finished = output.follow(stream, until=time.monotonic() + limit_s)
        except APIError as cause:
            raise RefusedError(read_engine_message(str(cause.explanation))) from cause
        finally:
            stream.close()
        state = self._wait() if finished else None
        return Ended(
            exit_status=None if state is None else int(state["ExitCode"]),
            stdout=bytes(output.stdout),
            log="\n".join(output.lines[-_LAST_LINES:]),
            out_of_memory=state is not None and bool(state.get("OOMKilled")),
        )

    def stop(self, grace_s: int) -> None:
        """Asks the run inside to end and gives it that long to write what it has; then it is killed."""
        with suppress(NotFound):
            self._container.stop(timeout=grace_s)

    def _wait(self) -> Mapping[str, Any]:
        """The engine closes the output a little before it knows the exit status."""
        with _still_there():
            self._container.wait(timeout=60)
            self._container.reload()
        state: Mapping[str, Any] = self._container.attrs["State"]
        if state.get("Status") in {"removing", "dead"}:
            raise _gone("its removal is in progress")
        return state

    def _options(self) -> dict[str, Any]:
        return {
            "name": self._name,
            "command": self._command,
            "entrypoint": [],
            "environment": {"PYTHONUNBUFFERED": "1"},
            "network_mode": self._network,
            "shm_size": SHARED_MEMORY,
            "init": True,
            "labels": {LABEL: "1"},
            "device_requests": [DeviceRequest(count=-1, capabilities=[["gpu"]])],
        }


@contextmanager
def _still_there() -> Iterator[None]:
    try:
        yield
    except NotFound as cause:
        raise _gone(str(cause.explanation)) from cause


def _gone(said: str) -> EdgeError:
    return EdgeError(f"somebody removed the container while it ran: {said}", reason="CONTAINER_GONE")


class _Output:
    """What a container writes: its standard output whole, its standard error as lines that are said at once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.stdout = bytearray()
        self.lines: list[str] = []
        self._say = say
        self._begun = b""

    def follow(self, stream: Any, *, until: float) -> bool:
        """Whether the output came to its end by then. A thread reads, so that a signal finds us waiting."""
        pieces: queue.Queue[tuple[bytes | None, bytes | None] | None] = queue.Queue()
        threading.Thread(target=_read, args=(stream, pieces.put), daemon=True).start()
        while (left := until - time.monotonic()) > 0:
            try:
                piece = pieces.get(timeout=left)
            except queue.Empty:
                break
            if piece is None:
                self._take(b"\n" if self._begun else b"")
                return True
            self.stdout += piece[0] or b""
            self._take(piece[1] or b"")
        return False

    def _take(self, data: bytes) -> None:
        *whole, self._begun = (self._begun + data).split(b"\n")
        for line in whole:
            text = line.decode("utf-8", "replace").rstrip("\r")
            self.lines.append(text)
            self._say(text)


def _read(stream: Any, put: Callable[[tuple[bytes | None, bytes | None] | None], None]) -> None:
    try:
        with suppress(DockerException, RequestException, OSError, ValueError, AttributeError):
            for piece in stream:
                put(piece)
    finally:
        put(None)
