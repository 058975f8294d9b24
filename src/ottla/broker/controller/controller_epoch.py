"""Who may change the cluster's metadata: the controller of the latest epoch, and nobody else.

Each election writes the node of the controller anew. A change names the version of the node that its controller wrote,
so one that was replaced meanwhile, without knowing it yet, changes nothing.
"""

from __future__ import annotations

from ottla.metadata import nodes
from ottla.metastore.port import Check, Create, MetadataStore, Operation, Set


def elect(store: MetadataStore, node_id: int) -> Check:
    """What every change of this controller must begin with. Raises StoreConflict if another was faster."""
    known = store.get(nodes.CONTROLLER)
    epoch = 1 if known is None else nodes.decode(known.data)["epoch"] + 1
    data = nodes.encode({"broker": node_id, "epoch": epoch})
    write: Operation = Create(nodes.CONTROLLER, data) if known is None else Set(nodes.CONTROLLER, data, known.version)
    # A broker must start on a full disk, or nobody could delete topics.
    (version,) = store.multi([write], urgent=True)
    return Check(nodes.CONTROLLER, version)
