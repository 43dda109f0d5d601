"""`.ci/run` with stand-ins for Python, nox and the scripts: what it runs, how it ends, and that it ends what it started."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.trees import write

ROOT = Path(__file__).resolve().parents[2]
PYTHON = """\
#!/usr/bin/env bash
mkdir -p .nox/ci/bin
printf '#!/usr/bin/env bash\\n' > .nox/ci/bin/pip
cp nox-stand-in .nox/ci/bin/nox
chmod +x .nox/ci/bin/*
"""
NOX = """\
#!/usr/bin/env bash
echo "nox $2" >> log
[ "$DEAF" = no ] || trap '' INT
[ "$2" != "$HANGS" ] || { echo $$ > child; exec sleep 600; }
[ "$2" != "$FAILS" ] || exit 7
"""
SCRIPT = '#!/usr/bin/env bash\necho "$(basename "$0") $*" >> log\nread -r line && echo "read $line" >> log\nexit 0\n'
EVERYTHING = ["nox lint", "nox check", "browser.sh ", "engine.sh up", "nox tests", "nox coverage", "engine.sh down"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    write(tmp_path, "nox-stand-in", NOX)
    for name, text in {"bin/python3.11": PYTHON, "ci/engine.sh": SCRIPT, "ci/browser.sh": SCRIPT}.items():
        write(tmp_path, name, text).chmod(0o755)
    return tmp_path


def start(checkout: Path, **environment: str) -> subprocess.Popen[bytes]:
    path = f"{checkout / 'bin'}:{os.environ['PATH']}"
    return subprocess.Popen(
        [checkout / ".ci/run"],
        env={"PATH": path, "HANGS": "-", "FAILS": "-", "DEAF": "no", **environment},
        start_new_session=True,
        stdin=subprocess.PIPE,
    )


def log(checkout: Path) -> list[str]:
    return (checkout / "log").read_text().splitlines()


def test_everything_is_run_in_order_without_reading_what_comes_in(checkout: Path) -> None:
    process = start(checkout)
    process.communicate(b"yes\n" * 10)
    assert (process.returncode, log(checkout)) == (0, EVERYTHING)


@pytest.mark.parametrize("failing", ["lint", "check", "tests", "coverage"])
def test_the_first_failure_is_the_end_and_its_code(checkout: Path, failing: str) -> None:
    process = start(checkout, FAILS=failing)
    process.communicate()
    assert process.returncode == 7
    assert log(checkout) == [*EVERYTHING[: EVERYTHING.index(f"nox {failing}") + 1], "engine.sh down"]


def test_an_engine_that_cannot_be_stopped_is_no_success(checkout: Path) -> None:
    write(checkout, "ci/engine.sh", '#!/usr/bin/env bash\n[ "$1" != down ]\n').chmod(0o755)
    process = start(checkout)
    process.communicate()
    assert process.returncode == 3


@pytest.mark.parametrize(
    ("number", "deaf", "code"),
    [(signal.SIGINT, "no", 130), (signal.SIGTERM, "no", 143), (signal.SIGHUP, "no", 129), (signal.SIGTERM, "yes", 143)],
    ids=["Ctrl-C", "SIGTERM", "SIGHUP", "one that hears nothing"],
)
def test_an_interrupt_ends_what_is_running_and_then_the_engine(
    checkout: Path, number: int, deaf: str, code: int
) -> None:
    process = start(checkout, HANGS="tests", DEAF=deaf)
    deadline = time.monotonic() + 60
    while not (checkout / "child").exists() or not (checkout / "child").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child = int((checkout / "child").read_text())
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == code
    assert log(checkout)[-2:] == ["nox tests", "engine.sh down"]
    assert not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]
