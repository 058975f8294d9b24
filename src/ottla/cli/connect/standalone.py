"""`ottla connect standalone`: a worker of its own with the connectors of some files, as connect-standalone.sh."""

from __future__ import annotations

import click

from ottla.cli.connect.extra import needs_connect
from ottla.cli.connect.start import announce, client_of, metrics_of
from ottla.cli.serving_options import log_level_option, metrics_option
from ottla.cli.settings import Settings, command


@command("standalone")
@click.argument("worker_file", metavar="WORKER.PROPERTIES")
@click.argument("connector_files", nargs=-1, required=True, metavar="CONNECTOR.PROPERTIES...")
@click.option("--listen", metavar="HOST:PORT", help="Where to listen [what the file says, or 127.0.0.1:8083].")
@click.option("--master", default="local[*]", metavar="URL", help="Of Spark [local[*]].")
@metrics_option
@log_level_option
def standalone(
    settings: Settings,
    worker_file: str,
    connector_files: tuple[str, ...],
    listen: str | None,
    master: str,
    metrics: str | None,
    log_level: str,
) -> None:
    """Run the connectors of these files, and serve the REST API, until Ctrl-C.

    What they are and how far they have read is kept in topics all the same, under names that end in the group.id of the
    worker's file ("standalone" if it has none): offset.storage.file.filename has no effect. Connectors that the files
    do not have any more are stopped.

    \b
      ottla connect standalone worker.properties source.properties sink.properties
    """
    import asyncio
    import logging

    from ottla.common.logging_setup import set_up_logging

    with needs_connect():
        from ottla.connect.standalone import StandaloneServer, standalone_worker
        from ottla.connect.worker.properties import read_properties
        from ottla.http.until_signal import run_until_signal
    set_up_logging(log_level, "text")
    given = read_properties(worker_file)
    given |= metrics_of(metrics)
    worker = standalone_worker(given | client_of(settings, given), listen=listen, master=master)
    connectors = {file: read_properties(file) for file in connector_files}
    server = StandaloneServer(worker, connectors)
    asyncio.run(run_until_signal(server, announce, logging.getLogger("ottla.connect")))
