"""The text that is sent for a question: shots, then the question, in the layout that vLLM's evaluation uses."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tooling.gsm8k.items import Problem

STOP = ("Question", "Assistant:", "<|separator|>")
"""Where a model that goes on to invent the next question is cut off."""


def render_prompt(question: str, shots: Sequence[Problem]) -> str:
    """The prompt, which ends in `Answer:`; in chat mode the same text is the one user message."""
    solved = "".join(f"Question: {shot.question}\nAnswer: {shot.answer}\n\n" for shot in shots)
    return f"{solved}Question: {question}\nAnswer:"


def cut_at_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the first stop string; some servers leave it in, or ignore that they were told one."""
    ends = [position for word in stop if word and (position := text.find(word)) >= 0]
    return text[: min(ends)] if ends else text


def prompt_hash(prompt: str) -> str:
    """`sha256` of a prompt in hexadecimal; equal hashes are the same question with the same shots."""
    return hashlib.sha256(prompt.encode()).hexdigest()
