"""Gets a server to evaluate (a process, a container, or one that runs) and conducts the runs against it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import requests

from tooling.commands.gsm8k_progress import Showing
from tooling.commands.terminal import Terminal
from tooling.edges.packaged_data import load_library
from tooling.edges.serving.client import Client, UnansweredError
from tooling.edges.serving.container import ContainerServer
from tooling.edges.serving.installed import find_installed
from tooling.edges.serving.logs import LogFollower
from tooling.edges.serving.ports import is_port_taken
from tooling.edges.serving.process import ProcessServer
from tooling.edges.serving.session import Evaluated, Server, drive, evaluate, wait_until_ready
from tooling.errors import EdgeError, ToolingError
from tooling.gsm8k.causes import Death, cut_line, find_cause, find_progress, find_tail
from tooling.gsm8k.config import Config
from tooling.gsm8k.hiding import hide_secrets
from tooling.gsm8k.judgement import allowed_lost
from tooling.gsm8k.launch import Launch
from tooling.gsm8k.prompts import prompt_hash, render_prompt
from tooling.gsm8k.results import DataSet, Run, ServerFacts
from tooling.gsm8k.score import Answered, Exchange, Verdict, judge
from tooling.gsm8k.watchdog import Stop, refine_stop

CAUSE_IN_LOG = {"SERVER_CRASHED", "SERVER_EXITED", "SERVER_DIED"}
RUNNING_BUDGET_S = 120.0
"""How long a server that runs already may take for the first completion."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """What every run of one evaluation shares. `launch` None: the server runs already at `url`.

    `secrets` must not stand in any text that is shown or kept.
    """

    config: Config
    data: DataSet
    launch: Launch | None
    url: str
    api_key: str | None
    image: str | None
    environ: Mapping[str, str]
    log_path: Path
    terminal: Terminal
    facts: ServerFacts
    secrets: tuple[str, ...]
    runs: list[Run] = field(default_factory=list)

    def conduct(self, restarts: int, *, begin: Callable[[], None]) -> None:
        """One run, and one more over the warm cache if asked for and the first came to its end. Ends the server.

        `runs` has what came to an end, also after an error; `begin` is called right before the server is started.
        """
        if self.launch is None:
            begin()
            self.runs.append(self._ask_running())
            return
        server = self._make_server(self.launch)
        try:
            begin()
            self.runs.append(self._start_and_ask(server, self.launch, "cold"))
            if restarts and self.runs[0].stop is None:
                self.runs.append(self._restart_and_ask(server, self.launch))
            server.end()
        finally:
            server.close()

    def _restart_and_ask(self, server: Server, launch: Launch) -> Run:
        """The second run; where there is no second start, a run that says why not, so that the first one counts."""
        try:
            server.end()
            return self._start_and_ask(server, launch, "warm")
        except EdgeError as error:
            stop = Stop(reason=error.reason, detail=self.hide(f"the second start failed: {error.message}"), world=True)
            return Run(cache="warm", startup_s=None, answers=(), seconds=0.0, stop=stop)

    def hide(self, text: str) -> str:
        return hide_secrets(text, self.secrets)

    def _make_server(self, launch: Launch) -> Server:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        self.log_path.write_bytes(b"")
        if self.image is None:
            found = find_installed(load_library().main_package, launch.argv, {**self.environ, **launch.env})
            self._know_flashinfer(found)
            return ProcessServer(launch.argv, environ=self.environ, env=launch.env, log_path=self.log_path)
        server = ContainerServer(
            self.image,
            launch.argv,
            environ=self.environ,
            env=launch.env,
            mounts=self.config.mounts,
            log_path=self.log_path,
        )
        try:
            image = server.load_facts()
        except ToolingError:
            server.close()
            raise
        self.facts = replace(self.facts, image_id=image.id, manifest_digest=image.manifest_digest)
        return server

    def _start_and_ask(self, server: Server, launch: Launch, cache: Literal["cold", "warm", "unknown"]) -> Run:
        check_port(launch)
        log = LogFollower(self.log_path, offset=self.log_path.stat().st_size)
        started = time.monotonic()
        server.start()
        run = self._run(server.poll, log, cache, started=started, budget_s=self.config.startup_max_wait_s)
        if isinstance(server, ContainerServer) and run.answers and self.facts.flashinfer_version is None:
            version = server.find_flashinfer(load_library().main_package)
            self._know_flashinfer((version, "package metadata in the container") if version else None)
        return run

    def _know_flashinfer(self, found: tuple[str, str] | None) -> None:
        if found is not None:
            self.facts = replace(self.facts, flashinfer_version=found[0], flashinfer_known_by=found[1])

    def _ask_running(self) -> Run:
        run = self._run(lambda: None, None, "unknown", started=time.monotonic(), budget_s=RUNNING_BUDGET_S)
        return replace(run, startup_s=None)

    def _run(
        self,
        poll: Callable[[], Death | None],
        log: LogFollower | None,
        cache: Literal["cold", "warm", "unknown"],
        *,
        started: float,
        budget_s: float,
    ) -> Run:
        shots, questions = self.data.shots, self.data.questions
        prompts = [render_prompt(problem.question, shots) for problem in questions]
        hashes = [prompt_hash(prompt) for prompt in prompts]

        def verdict(index: int, exchange: Exchange | None) -> Answered:
            return judge(questions[index], hashes[index], exchange, stop=self.config.stop)

        def is_correct(index: int, exchange: Exchange) -> bool:
            return verdict(index, exchange).verdict(self.config.answer) is Verdict.CORRECT

        showing = Showing(self.terminal, total=len(prompts), budget_s=budget_s, is_correct=is_correct, hide=self.hide)
        lines = log or LogFollower(Path("/dev/null"))
        try:
            seconds, stop, done = drive(
                self._start_then_ask(prompts, poll, lines, showing, started=started, budget_s=budget_s)
            )
        finally:
            showing.close()
        lines.finish()
        answers = [] if done is None else [verdict(index, exchange) for index, exchange in enumerate(done.exchanges)]
        run = Run(cache=cache, startup_s=seconds, answers=tuple(answers), seconds=done.seconds if done else 0.0)
        return run if stop is None else self._explain(run, stop, lines)

    async def _start_then_ask(
        self,
        prompts: list[str],
        poll: Callable[[], Death | None],
        log: LogFollower,
        showing: Showing,
        *,
        started: float,
        budget_s: float,
    ) -> tuple[float, Stop | None, Evaluated | None]:
        client = self._make_client()
        try:
            if self.launch is None:
                await _check_reachable(client, self.url)
            seconds, stop = await wait_until_ready(
                client,
                poll=poll,
                log=log,
                expected=self.config.served_model_name,
                started=started,
                budget_s=budget_s,
                progress=showing,
            )
            if stop is not None:
                return seconds, stop, None
            done = await evaluate(
                client,
                prompts,
                concurrency=self.config.concurrency,
                allowed_lost=allowed_lost(self.config, len(prompts)),
                stall_s=self.config.stall_s,
                poll=poll,
                progress=showing,
            )
            return seconds, done.stop, done
        finally:
            await client.close()

    def _make_client(self) -> Client:
        config = self.config
        return Client(
            self.url,
            model=config.served_model_name,
            api=config.api,
            api_key=self.api_key,
            max_tokens=config.max_tokens,
            temperature=config.temperature,
            stop=config.stop,
            extra_body=config.extra_body,
            timeout_s=config.request_timeout_s,
            concurrency=config.concurrency,
            hide=self.hide,
        )

    def _explain(self, run: Run, stop: Stop, log: LogFollower) -> Run:
        """The run with the reason why it stopped, and what the server's log says about it."""
        lines = [cut_line(self.hide(line)) for line in log.lines]
        cause = find_cause(lines) if stop.reason in CAUSE_IN_LOG else None
        return replace(
            run,
            stop=refine_stop(replace(stop, detail=cut_line(self.hide(stop.detail))), cause),
            cause=cause,
            progress=() if run.answers else find_progress(lines),
            log_tail=find_tail(lines),
        )


def check_port(launch: Launch) -> None:
    """Raises EdgeError if something listens where the server shall; it says which models that lists."""
    if not is_port_taken(launch.port):
        return
    raise EdgeError(
        f"port {launch.port} is in use{_who_listens(launch.url)}; the server was not started",
        hint="end what listens there, or set `port`",
        reason="PORT_IN_USE",
    )


def _who_listens(url: str) -> str:
    session = requests.Session()
    session.trust_env = False
    try:
        listed = session.get(f"{url}/v1/models", timeout=2).json()["data"]
        return f" by a server that lists {', '.join(str(model['id']) for model in listed[:3])}"
    except (requests.RequestException, ValueError, KeyError, TypeError):
        return ""
    finally:
        session.close()


async def _check_reachable(client: Client, url: str) -> None:
    try:
        await client.list_models()
    except UnansweredError as cause:
        raise EdgeError(
            f"--server {url}: {cause}", hint="does it run, and is that its address?", reason="SERVER_UNREACHABLE"
        ) from cause
