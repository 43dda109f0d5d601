"""Causes and progress out of logs."""

from __future__ import annotations

import pytest

from tooling.gsm8k.causes import TAIL_BYTES, clean_line, cut_line, find_cause, find_progress, find_tail, read_death

CHAIN = """\
INFO 11-29 12:00:00 [api_server.py:10] starting
Traceback (most recent call last):
  File "a.py", line 1, in <module>
    load()
ValueError: the checkpoint has no weight lm_head

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "b.py", line 2, in <module>
    start()
RuntimeError: cannot load the model
"""

TWO_PROCESSES = """\
(EngineCore_DP0 pid=12) ERROR 11-29 12:00:01 [core.py:842] EngineCore failed to start.
(EngineCore_DP0 pid=12) Traceback (most recent call last):
(EngineCore_DP0 pid=12)   File "core.py", line 1, in run
(EngineCore_DP0 pid=12)     boom()
(EngineCore_DP0 pid=12) RuntimeError: flashinfer-cubin version (0.6.12) does not match flashinfer version (0.6.13)
(APIServer pid=1) Traceback (most recent call last):
(APIServer pid=1)   File "api.py", line 1, in main
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""

HANDLED_EARLIER = """\
Traceback (most recent call last):
  File "optional.py", line 1, in <module>
ImportError: no module named optional
INFO: going on
Traceback (most recent call last):
  File "c.py", line 2, in <module>
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
"""

LOGS = {
    "a chain": (CHAIN, "ValueError: the checkpoint has no weight lm_head"),
    "an engine behind a front end": (
        TWO_PROCESSES,
        "RuntimeError: flashinfer-cubin version (0.6.12) does not match flashinfer version (0.6.13)",
    ),
    "one that was handled before": (
        HANDLED_EARLIER,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    ),
    "no traceback": ("loading\nRuntimeError: no kernel image\nbye", "RuntimeError: no kernel image"),
    "usage": (
        "usage: vllm serve\nvllm: error: unrecognized arguments: --foo",
        "vllm: error: unrecognized arguments: --foo",
    ),
    "a shell": ("sh: 1: vllm: not found", "sh: 1: vllm: not found"),
    "no error at all": ("hello\n\nworld\n", "world"),
    "nothing": ("", None),
}


@pytest.mark.parametrize(("log", "cause"), LOGS.values(), ids=LOGS.keys())
def test_the_innermost_cause_is_found(log: str, cause: str | None) -> None:
    assert find_cause(log.splitlines()) == cause


def test_an_autotune_line_says_best_how_far_a_start_came() -> None:
    lines = ["Loading weights 10%|#", "[AutoTuner]: Tuning fp4_gemm 3/40", "Compiling kernels", "hello"]
    assert find_progress(lines) == ("[AutoTuner]: Tuning fp4_gemm 3/40",)
    assert find_progress(lines[:1]) == ("Loading weights 10%|#",)
    assert find_progress(["hello"]) == ()


def test_colours_and_what_a_bar_overwrote_are_taken_away() -> None:
    assert clean_line("\x1b[1;31m 10%\r 20%\x1b[0m \r\n") == " 20%"


@pytest.mark.parametrize(
    ("code", "container", "sentence"),
    [
        (3, False, "exited with code 3"),
        (-9, False, "was ended by SIGKILL (likely out of memory)"),
        (-11, False, "was ended by SIGSEGV"),
        (137, True, "was ended by SIGKILL (likely out of memory)"),
        (137, False, "exited with code 137"),
        (255, True, "exited with code 255"),
    ],
)
def test_a_death_is_said_in_words(code: int, container: bool, sentence: str) -> None:
    assert read_death(code, container=container).sentence == sentence


def test_a_container_that_ran_out_of_memory_is_said_to() -> None:
    assert read_death(137, container=True, out_of_memory=True).sentence == "was ended by SIGKILL (out of memory)"


def test_what_is_quoted_of_a_log_is_bounded() -> None:
    assert cut_line("x" * 2000) == "x" * 2000
    assert cut_line("x" * 5000) == "x" * 2000 + "… (3,000 characters more)"
    assert find_tail([str(number) for number in range(60)]) == tuple(str(number) for number in range(10, 60))
    tail = find_tail(["é" * 2000] * 60)
    assert 0 < sum(len(line.encode()) for line in tail) <= TAIL_BYTES
