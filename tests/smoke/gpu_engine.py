"""A Docker engine of the tests' own that gives "GPUs" to containers, and images made from this machine's Python.

Docker knows NVIDIA's driver when it finds a program `nvidia-container-runtime-hook`; this one does nothing, or says what
a test wants and fails, so that the engine wraps real messages in its own words. The engine has a network namespace of
its own: one without a bridge would take the bridge of the engine beside it away.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LEFT_OUT = {"test", "site-packages", "idlelib", "tkinter", "lib2to3", "ensurepip", "turtledemo"}
SITE = f"usr/local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"

HOOK = """\
#!/bin/sh
[ ! -f {folder}/held ] || {{ touch {folder}/holding; sleep $(cat {folder}/held); }}
[ ! -f {folder}/said ] || {{ cat {folder}/said >&2; exit 1; }}
"""

TORCH = """\
__version__ = "2.11.0"
class version:
    cuda = "13.0"
class cuda:
    @staticmethod
    def is_available(): return False
    @staticmethod
    def device_count(): return 0
    @staticmethod
    def init(): raise RuntimeError({trouble!r})
"""
NO_GPU = "No CUDA GPUs are available"


class GpuEngine:
    """`say` is what the hook says before it fails, `hold` how long it keeps a start waiting; `forget` undoes both."""

    def __init__(self, folder: Path) -> None:
        self.address = f"unix://{folder}/engine.sock"
        self._said, self._held, self._holding = folder / "said", folder / "held", folder / "holding"

    def say(self, text: str) -> None:
        self._said.write_text(text)

    def hold(self, seconds: int) -> None:
        self._held.write_text(str(seconds))

    def is_held(self) -> bool:
        return self._holding.exists()

    def forget(self) -> None:
        for path in (self._said, self._held, self._holding):
            path.unlink(missing_ok=True)


@contextmanager
def running_engine() -> Iterator[GpuEngine]:
    """Starts it and ends it, with all that belongs to it."""
    folder = Path(tempfile.mkdtemp(prefix="pin-gpu-", dir="/var/tmp"))
    hook = folder / "bin" / "nvidia-container-runtime-hook"
    hook.parent.mkdir()
    hook.write_text(HOOK.format(folder=folder))
    hook.chmod(0o755)
    process = _start(folder)
    try:
        _wait_for(process, folder)
        yield GpuEngine(folder)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        shutil.rmtree(folder)


def _start(folder: Path) -> subprocess.Popen[bytes]:
    """The engine's process, which may not answer yet."""
    words = ["unshare", "--net", "dockerd", "--host", f"unix://{folder}/engine.sock", "--bridge", "none"]
    words += ["--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"]
    words += ["--iptables=false", "--ip-forward=false"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"},
        )  # fmt: skip


def _wait_for(process: subprocess.Popen[bytes], folder: Path) -> None:
    asking = ["docker", "--host", f"unix://{folder}/engine.sock", "version"]
    while subprocess.run(asking, capture_output=True, check=False).returncode != 0:
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        time.sleep(0.2)


def make_python_image(client: Any, tag: str) -> str:
    """This machine's Python with its standard library and the shared libraries that they need, and nothing else."""
    real = Path(sys.executable).resolve()
    standard = Path(sys.base_prefix) / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    libraries = {name for file in (real, *standard.glob("lib-dynload/*.so")) for name in _libraries(file)}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(real, "usr/local/bin/python3")
        archive.add(standard, f"usr/local/lib/{standard.name}", filter=_without_tests)
        for name in sorted(libraries):
            archive.add(os.path.realpath(name), name.lstrip("/"))
        temporary = tarfile.TarInfo("tmp")
        temporary.type, temporary.mode = tarfile.DIRTYPE, 0o1777
        archive.addfile(temporary)
    changes = ["ENV PATH=/usr/local/bin", "USER 10001:10001", "WORKDIR /tmp"]
    client.api.import_image_from_data(packed.getvalue(), repository=tag, tag="1", changes=changes)
    return f"{tag}:1"


def add_files(client: Any, base: str, tag: str, files: dict[str, bytes], *, mode: int = 0o755) -> str:
    """An image that is the base with those files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
    container = client.containers.create(base, ["python3"], network_mode="none")
    try:
        container.put_archive("/", packed.getvalue())
        container.commit(repository=tag, tag="1")
    finally:
        container.remove(force=True)
    return f"{tag}:1"


def packaging_files() -> dict[str, bytes]:
    import packaging

    folder = Path(packaging.__file__).parent
    return {f"{SITE}/packaging/{path.name}": path.read_bytes() for path in folder.glob("*.py")}


def stand_ins(trouble: str = NO_GPU) -> dict[str, bytes]:
    """Packages of those names: a torch that sees no GPU and says why, a FlashInfer of which only the version can be read."""
    version = b'__version__ = "0.6.13"\n'
    return {
        f"{SITE}/torch/__init__.py": TORCH.format(trouble=trouble).encode(),
        f"{SITE}/flashinfer/__init__.py": version,
        **{
            f"{SITE}/{name}-{number}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n".encode()
            for name, number in (("torch", "2.11.0"), ("flashinfer_python", "0.6.13"))
        },
    }


def _libraries(file: Path) -> list[str]:
    found = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=True).stdout
    return [word for word in found.split() if word.startswith("/")]


def _without_tests(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(member.name).parts
    return None if LEFT_OUT & set(parts) or any(part.startswith("config-") for part in parts) else member
