"""Times the release image's build from nothing, then its rebuild after a bump, in one run on one engine.

    python benchmarks/image_rebuild.py --base-image NAME [--ca-bundle FILE] [--to VERSION]

Once the doctor has nothing against a build, the build cache is emptied, cache mounts included, for everything that this
engine builds. The bump moves the four
files of a copy of this repository. Prints seconds, their ratio, and the bytes of the layers that changed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILES = ("versions.json", "requirements/cuda.txt", "docker/Dockerfile", "docker/Dockerfile.nightly_torch")
TARGET_RATIO = 0.25


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-image")
    parser.add_argument("--ca-bundle")
    parser.add_argument("--to", default="0.6.12", help="the release that the bump moves to (default: %(default)s)")
    args = parser.parse_args()
    words = [word for name in ("base_image", "ca_bundle") if (value := getattr(args, name))
             for word in (f"--{name.replace('_', '-')}", value)]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="image-rebuild-") as folder:
        tree = Path(folder)
        for name in ("versions.json", "requirements", "docker", "release.toml", ".dockerignore"):
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, tree / name)
        pinned = json.loads((tree / "versions.json").read_text())["variable"]["FLASHINFER_VERSION"]["default"]
        if args.to == pinned:
            parser.error(f"--to {args.to} is what is pinned, so that nothing would be built anew")
        _image(tree, ["--doctor", *words])
        subprocess.run(["docker", "builder", "prune", "--all", "--force"], check=True, stdout=subprocess.DEVNULL)
        cold = _build(tree, words)
        for name in FILES:
            (tree / name).write_text((tree / name).read_text().replace(pinned, args.to))
        again = _build(tree, words)
    return _say(cold, again, pinned, args.to)


def _build(tree: Path, words: list[str]) -> dict[str, Any]:
    (record,) = _image(tree, words)["records"]
    return dict(record["measurements"], image_id=record["image_id"])


def _image(tree: Path, words: list[str]) -> dict[str, Any]:
    """The JSON object of `tooling image` on the release target; whatever is no success ends the measurement."""
    command = [sys.executable, "-m", "tooling", "image", "--root", str(tree), "--json", "release", *words]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, cwd=ROOT)
    report: dict[str, Any] = json.loads(done.stdout)
    if done.returncode != 0:
        why = report["error"] or {"message": "see above"}
        print(f"not measured, `tooling image` ended with {done.returncode}: {why['message']}", file=sys.stderr)
        raise SystemExit(done.returncode)
    return report


def _say(cold: dict[str, Any], again: dict[str, Any], pinned: str, moved: str) -> int:
    same = [one == other for one, other in zip(cold["layers"], again["layers"], strict=True)]
    changed = _changed_bytes(again["image_id"], same)
    ratio = again["build_seconds"] / cold["build_seconds"]
    print(f"cold, {pinned}: {cold['build_seconds']:.0f} s, {cold['size_bytes'] / 1e9:.2f} GB")
    print(f"after the bump, {moved}: {again['build_seconds']:.0f} s, {sum(same)} of {len(same)} layers stay,")
    print(f"  {changed / 1e9:.2f} GB change ({changed / again['size_bytes']:.0%})")
    print(f"ratio {ratio:.2f}, target at most {TARGET_RATIO}")
    return 0 if ratio <= TARGET_RATIO else 4


def _changed_bytes(image: str, same: list[bool]) -> int:
    """The size of the layers that differ; steps that make no layer are left out of the history."""
    words = ["docker", "history", "--human=false", "--no-trunc", "--format", "{{.Size}} {{.CreatedBy}}", image]
    rows = [
        row.partition(" ")
        for row in subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    ]
    sizes = [int(size) for size, _, step in rows if step.startswith(("RUN", "COPY", "ADD", "WORKDIR"))]
    return sum(size for size, stays in zip(sizes, reversed(same), strict=False) if not stays)


if __name__ == "__main__":
    sys.exit(main())
