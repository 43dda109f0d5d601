"""`.ci/run` with stand-ins for Python, nox and the scripts: what it runs, how it ends, and that it ends what it started."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.trees import write
from tests.waiting import wait_for, wait_until_dead

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
job=$2
case " $* " in
    *" --install-only "*) job=prepare ;;
    *" --run-docker "*) job=beside ;;
esac
echo "nox $job" >> log
[ "$DEAF" = no ] || trap '' INT
[ "$job" != "$HANGS" ] || { echo $$ > child; [ "$STRIKES" = no ] || kill -s "$STRIKES" "$PPID"; exec sleep 600; }
[ "$job" != "$FAILS" ] || exit 7
"""
SCRIPT = '#!/usr/bin/env bash\necho "$(basename "$0") $*" >> log\nread -r line && echo "read $line" >> log\nexit 0\n'
BESIDE = ["nox beside", "nox tests"]
"""Two runs of the tests at once, in either order."""
EVERYTHING = ["nox lint", "nox check", "browser.sh ", "engine.sh up", "nox prepare", *BESIDE, "nox coverage",
              "engine.sh down"]  # fmt: skip


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
        env={"PATH": path, "HANGS": "-", "FAILS": "-", "DEAF": "no", "STRIKES": "no", **environment},
        start_new_session=True,
        stdin=subprocess.PIPE,
    )


def log(checkout: Path) -> list[str]:
    """What was run, the two runs of the tests in the order of their names; an interrupt may come before either wrote."""
    lines = (checkout / "log").read_text().splitlines()
    runs = iter(sorted(line for line in lines if line in BESIDE))
    return [next(runs) if line in BESIDE else line for line in lines]


def test_everything_is_run_in_order_without_reading_what_comes_in(checkout: Path) -> None:
    process = start(checkout)
    process.communicate(b"yes\n" * 10)
    assert (process.returncode, log(checkout)) == (0, EVERYTHING)


@pytest.mark.parametrize("failing", ["lint", "check", "prepare", "coverage"])
def test_the_first_failure_is_the_end_and_its_code(checkout: Path, failing: str) -> None:
    process = start(checkout, FAILS=failing)
    process.communicate()
    assert process.returncode == 7
    assert log(checkout) == [*EVERYTHING[: EVERYTHING.index(f"nox {failing}") + 1], "engine.sh down"]


@pytest.mark.parametrize("failing", ["beside", "tests"])
def test_a_failure_of_one_run_of_the_tests_lets_the_other_end(checkout: Path, failing: str) -> None:
    process = start(checkout, FAILS=failing)
    process.communicate()
    assert process.returncode == 7
    assert log(checkout) == [*EVERYTHING[: EVERYTHING.index("nox coverage")], "engine.sh down"]


def test_an_engine_that_cannot_be_stopped_is_no_success(checkout: Path) -> None:
    write(checkout, "ci/engine.sh", '#!/usr/bin/env bash\n[ "$1" != down ]\n').chmod(0o755)
    process = start(checkout)
    process.communicate()
    assert process.returncode == 3


@pytest.mark.parametrize(
    ("number", "deaf", "code", "hangs"),
    [
        (signal.SIGINT, "no", 130, "tests"),
        (signal.SIGTERM, "no", 143, "tests"),
        (signal.SIGHUP, "no", 129, "tests"),
        (signal.SIGTERM, "yes", 143, "tests"),
        (signal.SIGTERM, "no", 143, "beside"),
    ],
    ids=["Ctrl-C", "SIGTERM", "SIGHUP", "one that hears nothing", "the run beside"],
)
def test_an_interrupt_ends_what_is_running_and_then_the_engine(
    checkout: Path, number: int, deaf: str, code: int, hangs: str
) -> None:
    process = start(checkout, HANGS=hangs, DEAF=deaf)
    wait_for(lambda: (checkout / "child").exists() and (checkout / "child").read_text().strip())
    child = int((checkout / "child").read_text())
    process.send_signal(number)
    process.communicate(timeout=240)
    assert process.returncode == code
    assert log(checkout)[-1] == "engine.sh down"
    assert f"nox {hangs}" in log(checkout)
    wait_until_dead([child])


def test_an_interrupt_that_comes_as_soon_as_a_run_has_begun_ends_it_too(checkout: Path) -> None:
    """The run itself sends it, with its first breath."""
    process = start(checkout, HANGS="tests", STRIKES="TERM")
    process.communicate(timeout=240)
    assert process.returncode == 143
    assert log(checkout)[-1] == "engine.sh down"
    wait_until_dead([int((checkout / "child").read_text())])
