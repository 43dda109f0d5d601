"""How long our side takes for GSM8K's 1,319 questions against a server that answers at once, and how much memory.

    python benchmarks/gsm8k_client.py [--questions 1319] [--concurrency 64]

The server is a bare asyncio loop in a process of its own, which reads a request and writes the same completion; five
shots stand before every question, as in a real evaluation. Bounds on two cores: 15 s and 300 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from tooling import cli

REPLY = json.dumps(
    {"choices": [{"text": " It is 7.\n#### 7", "finish_reason": "stop"}], "usage": {"completion_tokens": 9}}
)
MODELS = json.dumps({"data": [{"id": "bench"}]})


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(
                (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
            )
            await reader.readexactly(length)
            body = (MODELS if head.startswith(b"GET") else REPLY).encode()
            fields = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            writer.write(fields + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def serve(sender: Connection) -> None:
    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        sender.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def write_problems(folder: Path, count: int) -> None:
    for name, number in (("test", count), ("train", 20)):
        lines = [
            json.dumps(
                {"question": f"{name} {each}: " + "how many apples are left? " * 8, "answer": "So. " * 40 + "#### 7"}
            )
            for each in range(number)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=1319)
    parser.add_argument("--concurrency", type=int, default=64)
    args = parser.parse_args()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    server = multiprocessing.Process(target=serve, args=(sender,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{receiver.recv()}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_problems(folder, args.questions)
        config = folder / "bench.yaml"
        config.write_text(
            f"model_name: bench\naccuracy_threshold: 0.99\ntolerance: 0.0\nnum_questions: {args.questions}\n"
            f"concurrency: {args.concurrency}\ndata: .\n"
        )
        begun, cpu = time.monotonic(), time.process_time()
        code = cli.main(["gsm8k", str(config), "--server", url, "--root", name])
        seconds, cpu_seconds = time.monotonic() - begun, time.process_time() - cpu
    server.kill()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cost = f"{seconds:.1f} s ({cpu_seconds:.1f} s of CPU), peak {peak_mb:.0f} MB"
    print(f"exit {code}: {args.questions} questions in {cost}")
    sys.exit(0 if code == 0 and seconds < 15 and peak_mb < 300 else 1)


if __name__ == "__main__":
    main()
