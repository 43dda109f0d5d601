"""The command and environment that a configuration starts a server with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tooling.errors import InputError
from tooling.findings import Finding, Severity
from tooling.gsm8k.config import READY_TIMEOUT, Config, option_value, second_budget

VERSION_CHECK_OFF = "FLASHINFER_DISABLE_VERSION_CHECK"
DEFAULT_PORT = 8000
"""Where vLLM and `transformers serve` listen when nobody tells them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A server to start: words, the variables that it gets on top of ours, and where it will listen.

    `api_key` is what the server was told to ask for; it is for the client and is never shown.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    host: str
    port: int
    api_key: str | None
    findings: tuple[Finding, ...]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def plan_launch(
    config: Config,
    *,
    free_port: int,
    environ: Mapping[str, str],
    path: str,
    strict: bool = False,
) -> Launch:
    """The server of a configuration. `free_port` is used where the command leaves the port open.

    Raises:
        InputError: there is no server to start, the port is given twice, or under `strict` another start-up budget.
    """
    port = _port(config, free_port)
    findings = [*_check_budget(config, environ, path, strict=strict), *_check_bypass(config, path)]
    budget = {READY_TIMEOUT: str(round(config.startup_max_wait_s))}
    argv = _argv(config, port)
    return Launch(
        argv=argv,
        env={**config.env, **budget},
        host="127.0.0.1",
        port=port,
        api_key=option_value(argv, "--api-key") or config.env.get("VLLM_API_KEY"),
        findings=tuple(findings),
    )


def _argv(config: Config, port: int) -> tuple[str, ...]:
    values = {"{port}": str(port), "{model}": config.model_name, "{host}": "127.0.0.1"}
    if config.server_command is not None:
        return tuple(_fill(word, values) for word in config.server_command)
    args = tuple(config.server_args or ())
    # What vLLM's harness adds to every file of its own; the files rely on it.
    added = [word for word in ("--trust-remote-code", "--disable-uvicorn-access-log") if word not in args]
    listening = [] if option_value(args, "--port") else ["--port", str(port)]
    host = [] if option_value(args, "--host") else ["--host", "127.0.0.1"]
    return ("vllm", "serve", config.model_name, *args, *added, *host, *listening)


def _fill(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def _port(config: Config, free_port: int) -> int:
    words = config.server_command if config.server_command is not None else config.server_args or ()
    said = option_value(words, "--port") or option_value(words, "-p")
    if said is None or said == "{port}":
        left_open = config.server_command is None or any("{port}" in word for word in words)
        return config.port or (free_port if left_open else DEFAULT_PORT)
    if not said.isdecimal() or not 0 < int(said) < 65_536:
        raise InputError(f"--port: found {said!r}, expected a number from 1 to 65535", reason="BAD_CONFIG")
    if config.port is not None and config.port != int(said):
        raise InputError(f"port is {config.port}, but the server is told --port {said}", reason="BAD_CONFIG")
    return int(said)


def _check_budget(config: Config, environ: Mapping[str, str], path: str, *, strict: bool) -> list[Finding]:
    """A second budget for the same start ends it early, or keeps a dead engine waiting: ours wins, aloud."""
    found = []
    for source, variables in (("env", config.env), ("the caller's environment", environ)):
        detail = second_budget(config, variables, source)
        if detail is None:
            continue
        if strict and source == "env":
            raise InputError(f"{path}: {detail}", hint=f"remove {READY_TIMEOUT} from env", reason="TWO_BUDGETS")
        found.append(_warning(path, detail, "TWO_BUDGETS"))
    return found


def _check_bypass(config: Config, path: str) -> list[Finding]:
    if config.env.get(VERSION_CHECK_OFF, "0") in {"", "0"}:
        return []
    detail = f"{VERSION_CHECK_OFF} silences FlashInfer's check that its packages are equal"
    return [_warning(path, detail, "VERSION_CHECK_OFF")]


def _warning(path: str, detail: str, reason: str) -> Finding:
    return Finding(check="gsm8k-server", detail=detail, severity=Severity.WARNING, path=path, reason=reason)
