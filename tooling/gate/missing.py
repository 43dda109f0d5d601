"""The commands that would produce the records that a verdict lacks, and the machines that they need."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from tooling.gate.escaping import console_line
from tooling.gate.policy import Channel
from tooling.gate.told import Errand
from tooling.gate.values import Outcome

_PLAIN = re.compile(r"[A-Za-z0-9._+-]+")


def command_for(
    stage: str, subject: str | None, channel: Channel, *, version: str | None, image: str | None, baseline: str | None
) -> tuple[str, str]:
    """The command and the machine for a stage's record; ("", "") for a stage that this program does not have.

    What comes from a record or a file's name is one word of the command, whatever it holds, since people copy it to a
    shell; a subject that no stage would have is left out.

    `image` is what smoke and gsm8k are to run in, None where the channel asks for no image; `baseline` is the path of
    the record that an evaluation is to be compared with, None where nobody gave one.
    """
    subject = subject if subject is not None and _PLAIN.fullmatch(subject) else None
    inside = "" if image is None else f" --image {shlex.quote(image)}"
    match stage:
        case "check":
            return "nox -s check", "any machine with the tree"
        case "bump":
            return (
                f"nox -s bump -- {shlex.quote(version or 'VERSION')}",
                "any machine with the tree and the package index",
            )
        case "image":
            target = f" -- {subject}" if subject in channel.image.targets or subject == "nightly" else ""
            return f"nox -s image{target}", "a machine with a Docker engine and buildx"
        case "smoke":
            gpu = f"a machine with an {subject} GPU" if subject else "a machine with a GPU"
            return f"nox -s smoke{' --' if inside else ''}{inside}", gpu + (" and the image" if inside else "")
        case "gsm8k":
            config = channel.gsm8k.subjects.get(subject or "", f"configs/gsm8k/{subject or 'CONFIG'}.yaml")
            compared = f" --baseline {shlex.quote(baseline or 'RECORD')}" if channel.gsm8k.baseline else ""
            where = "a machine with a GPU" + (", the model and the image" if inside else " and the model")
            return f"nox -s gsm8k -- {shlex.quote(config)}{inside}{compared}", where
        case _:
            return "", ""


def render_missing(steps: Sequence[Errand], outcome: Outcome) -> str:
    """The commands for people, one machine after the other."""
    if not steps:
        return f"nothing is missing; the verdict is {outcome}\n"
    machines = dict.fromkeys(step.machine for step in steps)
    lines = []
    for machine in machines:
        lines.append(f"on {console_line(machine)}:")
        lines += [f"  {console_line(step.command)}    # {console_line(', '.join(step.titles))}"
                  for step in steps if step.machine == machine]  # fmt: skip
    return "\n".join(lines) + "\n"
