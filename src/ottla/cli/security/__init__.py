"""`ottla security`: from nothing to a secured broker, or cluster, with one command; and what keeps it so.

`common/certificates.py` makes certificates, `plan` is what was decided, `files` is the text of every file, and `folder`
writes them.
"""

from __future__ import annotations

from ottla.cli.lazy import Lazy, LazyGroup, Section

security = LazyGroup(
    "security",
    help="Certificates, a first user and ready settings, for brokers and clients.",
    sections=(
        Section(
            "Commands",
            (
                Lazy("init", "security.commands:init", "A CA, certificates, an admin, and settings for all of them."),
                Lazy("add-broker", "security.commands:add_broker", "A certificate and settings for another broker."),
                Lazy("add-client", "security.commands:add_client", "A certificate and settings for a client."),
                Lazy("renew", "security.commands:renew", "New certificates in the place of the old ones."),
                Lazy("show", "security.commands:show_", "What there is, and until when it is good."),
            ),
        ),
    ),
)
