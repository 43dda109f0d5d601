"""What was seen, judged against the installed release's row and the gating rule: every difference is a finding.

The gate judges a record again with the same function. One module beside this one checks one subject.
"""

from __future__ import annotations

from collections.abc import Sequence

from tooling.capabilities.table import Row
from tooling.smoke.checks_machine import check_machine
from tooling.smoke.judgement import Judgement
from tooling.smoke.observations import Seen
from tooling.smoke.outcome import judge
from tooling.smoke.scenarios import Scenario


def judge_smoke(seen: Seen, row: Row | None, *, requested: Sequence[Scenario]) -> Judgement:
    """The stage's outcome: status and reason, each scenario's, the known faults', and all findings.

    `requested` are the scenarios that were asked for; one of them that did not take place is never a pass.
    """
    return judge(seen, row, requested, check_machine(seen, row))
