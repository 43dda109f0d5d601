"""What a process asks of the network and reads below the cache root, seen by the audit hook."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def heard(cache: Path, code: str) -> dict[str, Any]:
    """What the hook heard of that code, in a process of its own: a hook cannot be taken out again."""
    script = (
        "import json, sys; from tooling.edges.smoke.audit import Audit\n"
        f"audit = Audit({str(cache)!r}); audit.install()\n{code}\n"
        "print(json.dumps({'downloads': audit.downloads, 'opened': sorted(audit.opened)}))"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_files_read_below_the_root_are_named_and_written_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("x")
    code = f"open({str(tmp_path / 'in' / 'a.json')!r}).read(); open({str(tmp_path / 'in' / 'b')!r}, 'w').close(); open('/etc/hostname')"
    assert heard(tmp_path / "in", code)["opened"] == ["a.json"]


def test_other_hosts_are_downloads_and_this_one_is_not(tmp_path: Path) -> None:
    code = """
import contextlib, socket
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen()
socket.create_connection(server.getsockname())
other = socket.socket(); other.setblocking(False)
with contextlib.suppress(OSError):
    other.connect(('192.0.2.7', 443))
with contextlib.suppress(OSError):
    import subprocess; subprocess.run(['curl', 'https://cubins.test/x'], env={'PATH': '/nowhere'})
"""
    assert heard(tmp_path, code)["downloads"] == ["192.0.2.7:443", "curl https://cubins.test/x"]
