"""Settings of client quotas: over which time what clients use is measured. The quotas themselves are metadata."""

from __future__ import annotations

from ottla.common.config.checks import at_least
from ottla.common.config.configuration import Configuration
from ottla.common.config.setting import Unit, integer


class QuotaSettings(Configuration):
    quota_window_num = integer(
        "quota.window.num",
        11,
        "Over how many windows the rates of client quotas are measured. What all but one of them allow may be used at "
        "once.",
        check=at_least(1),
    )
    quota_window_size_seconds = integer(
        "quota.window.size.seconds", 1, "How long such a window is.", unit=Unit.SECONDS, check=at_least(1)
    )
    controller_quota_window_num = integer(
        "controller.quota.window.num",
        11,
        "The same for partitions that are made or deleted (controller_mutation_rate): so many windows may be saved up.",
        check=at_least(1),
    )
    controller_quota_window_size_seconds = integer(
        "controller.quota.window.size.seconds", 1, "How long such a window is.", unit=Unit.SECONDS, check=at_least(1)
    )
