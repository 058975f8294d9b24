"""The metadata store of a cluster: ZooKeeper, through kazoo.

`store.py` is the store and who keeps its session. `session.py` is one session from its beginning to its end,
`connection.py` what kazoo's connection does for us beyond kazoo, `callbacks.py` the thread that tells listeners and
watches. Why so: docs/decisions/0013-zookeeper-through-kazoo.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.common.errors import OttlaError
from ottla.metastore.zookeeper.options import ZookeeperOptions

if TYPE_CHECKING:
    from ottla.metastore.zookeeper.store import ZookeeperStore

__all__ = ["ZookeeperOptions", "open_zookeeper"]


def open_zookeeper(options: ZookeeperOptions) -> ZookeeperStore:
    """Connected, and the chroot made. OttlaError says in a sentence why that cannot be."""
    try:
        import kazoo  # noqa: F401
    except ImportError:
        raise OttlaError("zookeeper.connect needs the package kazoo: pip install 'ottla[cluster]'") from None
    from ottla.metastore.zookeeper.store import ZookeeperStore

    return ZookeeperStore(options)
