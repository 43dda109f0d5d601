"""An engine's warm-up imports the rule and the row: standard library and packaging, nothing else."""

from __future__ import annotations

import subprocess
import sys

MODULES = ("facts", "gating", "table", "table_text", "comparing")


def test_rule_and_table_import_nothing_heavy() -> None:
    code = (
        "import sys\n"
        + "".join(f"import tooling.capabilities.{name}\n" for name in MODULES)
        + "print(sorted({m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)))\n"
    )
    done = subprocess.run([sys.executable, "-S", "-c", _with_path(code)], capture_output=True, text=True, check=True)
    assert set(eval(done.stdout)) <= {"packaging", "tooling", "__main__"}
    loaded = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            _with_path(code + "print('tooling.capabilities.source' in sys.modules, 'tooling.edges' in sys.modules)"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout.splitlines()[-1] == "False False"


def _with_path(code: str) -> str:
    return f"import sys\nsys.path[:] = {sys.path!r}\n{code}"
