"""What `--attr-plan` prints in place of running items."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from attrcheck.contracts import Case
from attrcheck.engine.lab import Lab
from attrcheck.engine.planning import plan
from attrcheck.plugin.collecting import parameters_of
from attrcheck.plugin.items import resolve, worker_of
from attrcheck.report import costs


def lines(config: pytest.Config, items: Iterable[pytest.Item]) -> list[str]:
    """The plan of the items that were collected."""
    wanted = [parameter for item in items for parameter in parameters_of(item)]
    cases = [parameter for parameter in wanted if isinstance(parameter, Case)]
    settings = replace(resolve(config, worker_of(config)), isolate="off")
    plans = plan(Lab.of(settings), cases)
    return costs.lines(plans, settings.device, settings.threads, len(wanted) - len(cases))
