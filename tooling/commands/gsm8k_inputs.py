"""Reads what an evaluation is told, before anything is started: arguments, configuration, problems, baseline."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from tooling.edges.environment import load_environment
from tooling.edges.files.reading import load_text
from tooling.edges.gsm8k_data import default_cache, load_data
from tooling.errors import EdgeError, InputError
from tooling.evidence import Record, parse_record
from tooling.gsm8k.comparison import Baseline, check_conditions, parse_baseline
from tooling.gsm8k.config import Config
from tooling.gsm8k.config_text import ParsedConfig, parse_config
from tooling.gsm8k.data_location import parse_location
from tooling.gsm8k.hiding import show_address
from tooling.gsm8k.results import DataSet, conditions, plan_data


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line and its files say, read before anything is started."""

    parsed: ParsedConfig
    data: DataSet
    data_overridden: bool
    baseline: Baseline | None
    baseline_source: str | None
    baseline_of: Mapping[str, object] | None
    environ: Mapping[str, str]

    @property
    def config(self) -> Config:
        return self.parsed.config


def load_asked(args: argparse.Namespace) -> Asked:
    """Everything that is read. Raises InputError for what is wrong with it, EdgeError if data cannot be fetched."""
    for option in ("image", "data"):
        if getattr(args, option) == "":
            raise InputError(f"--{option}: found an empty text", reason="BAD_ARGUMENTS")
    if args.server is not None:
        _check_server(args.server, restarts=args.restarts)
    path: Path = args.config
    text = load_text(path.parent, path.name).text
    parsed = parse_config(text, path=str(path), strict=args.strict)
    if args.data is not None:
        parsed = replace(parsed, config=replace(parsed.config, data=parse_location(args.data)))
    environ = load_environment()
    base = Path() if args.data is not None else path.parent
    data = _load_data(parsed.config, base, default_cache(environ.get("XDG_CACHE_HOME")))
    earlier = None if args.baseline is None else _load_baseline(args.baseline, conditions(parsed.config, data))
    return Asked(
        parsed=parsed,
        data=data,
        data_overridden=args.data is not None,
        baseline=earlier and earlier[0],
        baseline_source=None if args.baseline is None else args.baseline.name,
        baseline_of=earlier and _release_of(earlier[1]),
        environ=environ,
    )


def _check_server(url: str, *, restarts: int) -> None:
    if restarts:
        raise InputError("--restarts: a server that runs already cannot be started again", reason="BAD_ARGUMENTS")
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number or too high, or a broken IPv6 address
        good = False
    if not good or any(char.isspace() or not char.isprintable() for char in url):
        raise InputError(
            f"--server: found {show_address(url)!r}, expected an address such as http://127.0.0.1:8000",
            reason="BAD_ARGUMENTS",
        )


def _load_data(config: Config, base: Path, cache: Path) -> DataSet:
    """The problems; an address of theirs is told without its password."""
    try:
        raw = load_data(config.data, base=base, cache=cache)
        return plan_data(config, replace(raw, source=show_address(raw.source)))
    except (EdgeError, InputError) as error:
        raise type(error)(show_address(error.message), hint=error.hint, reason=error.reason) from error


def _load_baseline(path: Path, wanted: Mapping[str, object]) -> tuple[Baseline, Record]:
    record = parse_record(load_text(path.parent, path.name).text)
    if record.stage != "gsm8k":
        raise InputError(f"{path}: found a record of {record.stage}, expected gsm8k", reason="BAD_BASELINE")
    baseline = parse_baseline(record.measurements, path=str(path))
    check_conditions(baseline, wanted, path=str(path))
    return baseline, record


def _release_of(record: Record) -> dict[str, object]:
    """Whose evaluation the baseline is: a release that is compared with itself never got worse."""
    return {
        "flashinfer_version": record.flashinfer_version,
        "pins_sha256": record.pins_sha256,
        "commit": record.commit,
        "image_id": record.image_id,
    }
