"""UpdateFeatures v0-2. Moves finalized features within what this broker can run; all of a request or none of it."""

from __future__ import annotations

from collections.abc import Awaitable

from ottla.broker.broker import Broker
from ottla.broker.chores.deadlines import in_time
from ottla.broker.context import RequestContext
from ottla.broker.controller.change_log import Requester
from ottla.broker.controller.features import SUPPORTED
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse

Update = UpdateFeaturesRequest.FeatureUpdateKey

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3


def handle(
    broker: Broker, context: RequestContext, request: UpdateFeaturesRequest
) -> Awaitable[UpdateFeaturesResponse]:
    # By the time a coroutine runs, the context may be that of the connection's next request.
    return _handle(broker, context.version, context.requester, request)


async def _handle(
    broker: Broker, version: int, by: Requester, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    levels = dict(broker.image.features)
    try:
        for update in request.feature_updates:
            levels[update.feature] = _new_level(update, levels.get(update.feature, 0), version, broker.node_id)
        if levels != broker.image.features and not request.validate_only:
            await in_time(request.timeout_ms, lambda: broker.topics.set_features(levels, by))
    except ApiError as error:
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdateFeaturesResponse.UpdatableFeatureResult(feature=update.feature, error_message="NONE")
            for update in request.feature_updates
        ],
    )


def _new_level(update: Update, current: int, version: int, node_id: int) -> int:
    level = update.max_version_level
    fault = _fault(update, current, version, node_id)
    if fault is not None:
        raise ApiError(
            ErrorCode.INVALID_UPDATE_VERSION,
            "The update failed for all features since the following feature had an error: "
            f"Invalid update version {level} for feature {update.feature}. {fault}",
        )
    return level


def _fault(update: Update, current: int, version: int, node_id: int) -> str | None:
    downgrade_allowed = update.upgrade_type in (_SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE)
    if version == 0:
        downgrade_allowed = update.allow_downgrade
    elif update.upgrade_type not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    level = update.max_version_level
    if level < 0:
        return "A feature version cannot be less than 0."
    supported = SUPPORTED.get(update.feature)
    if supported is None:
        return f"Local controller {node_id} does not support this feature."
    if not supported[0] <= level <= supported[1]:
        return f"Local controller {node_id} only supports versions {supported[0]}-{supported[1]}"
    if level < current and not downgrade_allowed:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    return None
