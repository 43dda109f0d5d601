"""A small OpenAI-compatible server that misbehaves as its command line says; run as a program, or in a thread.

python programmable_server.py --port 8000 --model tiny [--fault NAME] [--after N] [--ready-after SECONDS] …
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


@dataclass
class Behaviour:
    """What the server does. `answer` maps a prompt to a completion; `fault` begins after `after` requests, for `lasting`."""

    model: str = "tiny"
    answer: Callable[[str], str] = lambda prompt: " The answer is #### 1"
    fault: str = ""
    after: int = 0
    lasting: float = math.inf
    ready_after: float = 0.0
    delay: float = 0.0
    started: float = field(default_factory=time.monotonic)
    requests: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    behaviour: ClassVar[Behaviour]

    def log_message(self, *args: object) -> None: ...

    def do_GET(self) -> None:
        ready = time.monotonic() - self.behaviour.started >= self.behaviour.ready_after
        if not ready:
            self._send(503, b'{"error": "loading"}')
        elif self.path == "/v1/models":
            self._send(200, json.dumps({"object": "list", "data": [{"id": self.behaviour.model}]}).encode())
        else:
            self._send(200, b"{}")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.behaviour.lock:
            self.behaviour.requests += 1
            number = self.behaviour.requests
            self.behaviour.bodies.append(body)
            self.behaviour.keys.append(self.headers.get("Authorization", ""))
        time.sleep(self.behaviour.delay)
        past = number - self.behaviour.after
        if self.behaviour.fault and 0 < past <= self.behaviour.lasting:
            FAULTS[self.behaviour.fault](self)
            return
        self._complete(body)

    def _complete(self, body: dict[str, Any]) -> None:
        chat = self.path.endswith("/chat/completions")
        text = self.behaviour.answer(body["messages"][-1]["content"] if chat else body["prompt"])
        choice = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        reply = {"choices": [{"index": 0, "finish_reason": "stop", **choice}], "usage": {"completion_tokens": 7}}
        self._send(200, json.dumps(reply).encode())

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def close_early(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b'{"choices"')
        self.drop()

    def drop(self) -> None:
        self.close_connection = True
        self.connection.close()

    def stream_garbage(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        chunk = os.urandom(1 << 20)
        try:
            for _ in range(64):
                self.wfile.write(chunk)
        except OSError:
            self.close_connection = True


FAULTS: dict[str, Callable[[Handler], None]] = {
    "error": lambda handler: handler._send(500, b'{"error": {"message": "CUDA error: an illegal memory access"}}'),
    "denied": lambda handler: handler._send(
        401, json.dumps({"error": f"{'no ' * 37}such key: {handler.headers.get('Authorization')}"}).encode()
    ),
    "refused-in-200": lambda handler: handler._send(
        200, json.dumps({"error": f"{'no ' * 25}such key: {handler.headers.get('Authorization')}"}).encode()
    ),
    "html": lambda handler: handler._send(200, b"<html><body>Bad gateway</body></html>", "text/html"),
    "not-json": lambda handler: handler._send(200, b'{"choices": [{"te'),
    "no-choices": lambda handler: handler._send(200, b'{"choices": []}'),
    "error-in-200": lambda handler: handler._send(200, b'{"error": {"message": "engine dead"}}'),
    "empty": lambda handler: handler._send(200, b'{"choices": [{"text": ""}]}'),
    "unparsable": lambda handler: handler._send(200, b'{"choices": [{"text": "I cannot say."}]}'),
    "close": lambda handler: handler.drop(),
    "close-early": lambda handler: handler.close_early(),
    "garbage": lambda handler: handler.stream_garbage(),
    "hang": lambda handler: time.sleep(3600),
    "die": lambda handler: os._exit(7),
    "kill": lambda handler: os.kill(os.getpid(), signal.SIGKILL),
}


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None: ...


@contextmanager
def running(behaviour: Behaviour) -> Iterator[str]:
    """The server in a thread; gives its address."""
    from tests.http_servers import serving  # not at the top: as a program it runs where there are no tests

    server = QuietServer(("127.0.0.1", 0), type("Bound", (Handler,), {"behaviour": behaviour}))
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--fault", default="")
    parser.add_argument("--after", type=int, default=0)
    parser.add_argument("--ready-after", type=float, default=0.0)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--answers", help="a JSON file: question to completion")
    parser.add_argument("--second-answers", help="what it answers from its second start on (a changed cache)")
    parser.add_argument("--say", action="append", default=[], help="a line for the log")
    parser.add_argument("--orphan", help="starts a child in a session of its own; its id goes into that file")
    args = parser.parse_args()
    for line in args.say:
        print(line, flush=True)
    if args.orphan:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
        with open(args.orphan, "w") as file:
            file.write(str(child.pid))
    behaviour = Behaviour(
        model=args.model, fault=args.fault, after=args.after, ready_after=args.ready_after, delay=args.delay
    )
    if args.answers:
        behaviour.answer = _load_answers(args.answers, args.second_answers)
    QuietServer(("127.0.0.1", args.port), type("Bound", (Handler,), {"behaviour": behaviour})).serve_forever(0.05)


def _load_answers(path: str, second: str | None) -> Callable[[str], str]:
    if second is not None:
        seen = f"{path}.started"
        if os.path.exists(seen):
            path = second
        else:
            with open(seen, "w"):
                pass
    with open(path) as file:
        answers = json.load(file)

    def answer(prompt: str) -> str:
        asked = prompt.rsplit("Question: ", 1)[1].removesuffix("\nAnswer:")
        return str(answers.get(asked, "I do not know"))

    return answer


if __name__ == "__main__":
    main()
