"""DescribeCluster v0-2. The brokers at their addresses on this listener, and the cluster's id.

A controller's endpoint (KIP-919) is not served: this broker is its own controller and has none.
"""

from __future__ import annotations

from ottla.broker.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError, ErrorCode
from ottla.metadata.image import reachable
from ottla.protocol.messages import DescribeClusterRequest, DescribeClusterResponse

_BROKERS, _CONTROLLERS = 1, 2


def handle(broker: Broker, context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        raise ApiError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != _BROKERS:
        raise ApiError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    image = broker.image
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(broker_id=node.id, host=host, port=port, rack=node.rack)
            for node, (host, port) in reachable(image, context.listener)
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
