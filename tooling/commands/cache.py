"""Carry a tuned kernel cache from one machine to a fleet: export, import, show, verify.

A cache holds which kernel was the fastest for each shape. Tuning takes minutes; machines with the same GPU and the same
libraries can take the result instead. A cache of another environment is refused, with the field that differs.

Examples:
  tooling cache export tuned.json                          the one cache below the engine's cache root
  tooling cache export tuned.json --from CACHE/0.6.13/sm90/HASH
  tooling cache show tuned.json                            where it comes from and what is in it
  tooling cache verify tuned.json                          whole, and of an environment like this machine's
  tooling cache import tuned.json                          below the engine's cache root
  tooling cache import tuned.json --to /opt/cache --unchecked   while building an image, where there is no GPU
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from tooling.commands.recording import load_pinned_tree
from tooling.commands.report import Report
from tooling.commands.terminal import Terminal
from tooling.errors import ExitCode, InputError
from tooling.findings import Finding
from tooling.warmup.bundle import Bundle
from tooling.warmup.carrying import export_cache, foreign_fields, load_bundle, place_bundle
from tooling.warmup.runtime import load_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("export", "import", "show", "verify"), help="what to do")
    parser.add_argument("file", type=Path, metavar="FILE", help="the carried cache")
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="DIR", help="export: the cache's folder or a file in it"
    )
    parser.add_argument("--to", type=Path, metavar="DIR", help="import: the cache root (default: the engine's)")
    parser.add_argument("--unchecked", action="store_true", help="import: do not compare environments")


def run(args: argparse.Namespace, terminal: Terminal) -> Report:
    _check_options(args)
    if args.action == "export":
        return _export(args, terminal)
    bundle = load_bundle(args.file)
    _say(bundle, terminal)
    if args.action == "show":
        return _report("shown", bundle)
    if args.action == "import" and args.unchecked:
        return _import(args, bundle, terminal)
    findings = _findings(bundle, args.file)
    if findings:
        terminal.say_findings(findings)
        status = "refused" if args.action == "import" else "foreign"
        return Report(
            command="cache", status=status, exit_code=ExitCode.FINDINGS, findings=findings, fields=_fields(bundle)
        )
    if args.action == "verify":
        terminal.say("whole, and of an environment like this one")
        return _report("verified", bundle)
    return _import(args, bundle, terminal)


def _check_options(args: argparse.Namespace) -> None:
    for name, value, action in (
        ("--from", args.source, "export"),
        ("--to", args.to, "import"),
        ("--unchecked", args.unchecked, "import"),
    ):
        if value and args.action != action:
            raise InputError(f"{name} goes with {action}, not with {args.action}", reason="BAD_ARGUMENTS")


def _export(args: argparse.Namespace, terminal: Terminal) -> Report:
    pins = load_pinned_tree(args.root).pins_sha256
    bundle = export_cache(args.source or _only_cache(terminal), args.file, pins_sha256=pins)
    _say(bundle, terminal)
    terminal.say(f"written to {args.file}")
    return _report("exported", bundle)


def _only_cache(terminal: Terminal) -> Path:
    """The one cache below the engine's root."""
    root = _engines_root(terminal, hint="say which: --from DIR")
    found = sorted(path for path in root.glob("*/*/*") if path.is_dir())
    if len(found) == 1:
        return found[0]
    names = ", ".join(str(path) for path in found) or "none"
    raise InputError(
        f"{root}: expected one cache below it, found {names}", hint="say which: --from DIR", reason="NO_CACHE"
    )


def _engines_root(terminal: Terminal, *, hint: str) -> Path:
    """The engine's own cache root; what its variables hold that makes no sense is said."""
    settings = load_settings()
    for problem in settings.problems:
        terminal.say(f"{terminal.paint('warning:', 'yellow', 'bold')} {problem}")
    if settings.cache_root is None:
        raise InputError("there is no cache root here", hint=hint, reason="NO_CACHE")
    return settings.cache_root


def _import(args: argparse.Namespace, bundle: Bundle, terminal: Terminal) -> Report:
    placed = place_bundle(bundle, args.to or _engines_root(terminal, hint="say where: --to DIR"))
    for file in placed:
        terminal.say(f"{file.path}{f' (left alone: {file.kept})' if file.kept else ''}")
    findings = tuple(_foreign(file.kept, file.path, hint="move that file away") for file in placed if file.reason)
    terminal.say_findings(findings)
    fields = {
        "placed": [str(file.path) for file in placed if not file.kept],
        "kept": [{"path": str(file.path), "why": file.kept} for file in placed if file.kept],
    }
    if not findings:
        return _report("imported", bundle, **fields)
    return Report(
        command="cache",
        status="refused",
        exit_code=ExitCode.FINDINGS,
        findings=findings,
        fields={**_fields(bundle), **fields},
    )


def _findings(bundle: Bundle, path: Path) -> tuple[Finding, ...]:
    return tuple(
        _foreign(
            f"{field} is {there!r} in the cache and {here!r} on this machine",
            path,
            hint="tune here, or take the cache of a machine like this one",
        )
        for field, there, here in foreign_fields(bundle)
    )


def _foreign(detail: str, path: Path, *, hint: str) -> Finding:
    return Finding(check="environment", detail=detail, path=str(path), reason="FOREIGN", hint=hint)


def _say(bundle: Bundle, terminal: Terminal) -> None:
    terminal.say(terminal.paint(f"FlashInfer {bundle.version} on {bundle.arch}, {bundle.entries} entries", "bold"))
    for name, value in sorted(bundle.metadata.items()):
        terminal.say(f"  {name:<24}{value}")
    terminal.say(f"  {'tuned for':<24}{bundle.identity}")
    terminal.say(f"  {'exported':<24}{bundle.created}, tool {bundle.tool_version}, pins {bundle.pins_sha256 or 'none'}")
    for name in bundle.files:
        terminal.say(f"  {name}")


def _report(status: str, bundle: Bundle, **more: object) -> Report:
    return Report(command="cache", status=status, exit_code=ExitCode.OK, fields={**_fields(bundle), **more})


def _fields(bundle: Bundle) -> Mapping[str, object]:
    return {
        "version": bundle.version,
        "arch": bundle.arch,
        "identity": bundle.identity,
        "metadata": dict(bundle.metadata),
        "entries": bundle.entries,
        "files": list(bundle.files),
        "created": bundle.created,
        "pins_sha256": bundle.pins_sha256,
    }
