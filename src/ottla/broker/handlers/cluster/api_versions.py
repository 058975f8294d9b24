"""ApiVersions v0-4. What this broker serves, and the features that are finalized.

A version above 4 is answered in the format of version 0 with UNSUPPORTED_VERSION (KIP-511); the router calls
`unsupported` for that. Versions from 3 name the client's software, which must look like a name.
"""

from __future__ import annotations

import re
from functools import cache

from ottla.broker.apis import APIS
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.broker.controller.features import SUPPORTED
from ottla.common.errors import ErrorCode
from ottla.protocol.messages import ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(broker: Broker, context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.client_software = (name, version)
    image = broker.image
    return ApiVersionsResponse(
        api_keys=_api_keys(),
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED.items()
            # Before v4 a feature whose lowest version is 0 cannot be told (KIP-1022).
            if low > 0 or context.version >= 4
        ],
        finalized_features_epoch=image.features_epoch,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in image.features.items()
            if level > 0
        ],
    )


def unsupported(broker: Broker) -> ApiVersionsResponse:
    """For an ApiVersions request of a version we do not know: which versions of it we do."""
    own = [key for key in _api_keys() if key.api_key == 18]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)


@cache
def _api_keys() -> tuple[ApiVersionsResponse.ApiVersion, ...]:
    return tuple(
        ApiVersionsResponse.ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
        for api in sorted(APIS.values())
        if not api.for_brokers
    )
