"""How large a record of the topic may be, for schemas that are large: what cannot be stored is not worth parsing."""

from __future__ import annotations

from ottla.client.address import ClusterAddress
from ottla.client.admin.topic_settings import topic_settings
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError

_SETTING = "max.message.bytes"


def record_bytes_max(address: ClusterAddress, topic: str, timeout_s: float) -> int | None:
    """None where nobody tells us: the broker has the last word anyway."""
    cluster = ClusterClient(address, timeout_s=timeout_s, client_id="ottla-registry")
    try:
        setting = topic_settings(cluster, [topic], [_SETTING]).get(topic, {}).get(_SETTING)
    except (OttlaError, OSError):
        return None
    finally:
        cluster.close()
    value = setting.value if setting is not None else None
    return int(value) if value is not None and value.isdigit() else None
