"""`ottla streams run`: an application in the foreground, until it is done, stopped or beyond help."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.given import GivenPath
from ottla.cli.listen_address import ListenAddress
from ottla.cli.output import confirm
from ottla.cli.pipeline.run import (
    conf_option,
    data_dir_option,
    reporter_for,
    require_spark,
    serving_metrics,
    stopped_by_signals,
)
from ottla.cli.serving_options import metrics_option
from ottla.cli.settings import Settings, command, parse_assignment
from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from ottla.exposition.protection import Protection
    from ottla.spark.pipeline.reporting import Reporter
    from ottla.streams import Application


@command("run", asks=True)
@click.argument("file", type=GivenPath())
@click.option("--once", is_flag=True, help="Process all that is there now, then stop.")
@click.option("--master", default="local[*]", metavar="URL", help="Of a Spark cluster [local[*], this machine].")
@click.option("--id", "application_id", metavar="ID", help="Another application id than that in the file.")
@click.option("--reset", is_flag=True, help="Delete its state, forget how far it was, start over; asks first.")
@click.option("--reprocess", is_flag=True, help="A new run from the start into new topics, beside the old one.")
@click.option("--create-topics", is_flag=True, help="Create topics that it reads or writes and that are not there.")
@click.option("--http", type=ListenAddress(any_host=True), help="Answer questions about its stores there, as JSON.")
@click.option("--http-users", metavar="FILE", type=GivenPath(str), help="Who may ask, with passwords [everybody].")
@click.option("--http-certificate", metavar="FILE", type=GivenPath(str), help="PEM: HTTPS for --http.")
@click.option("--http-key", metavar="FILE", type=GivenPath(str), help="PEM: the certificate's key.")
@click.option("--checkpoint", metavar="URL", help="Of a shared folder, for a cluster [in --data-dir].")
@metrics_option
@conf_option
@data_dir_option
def run(
    settings: Settings,
    file: Path,
    once: bool,
    master: str,
    application_id: str | None,
    reset: bool,
    reprocess: bool,
    create_topics: bool,
    http: str | None,
    http_users: str | None,
    http_certificate: str | None,
    http_key: str | None,
    checkpoint: str | None,
    metrics: str | None,
    conf: tuple[str, ...],
    data_dir: Path | None,
) -> None:
    """Run the application in FILE (.py) until Ctrl-C.

    \b
      ottla streams run word_count.py
      ottla streams run word_count.py --once
      ottla streams run word_count.py --reprocess
      ottla streams run word_count.py --master spark://host:7077 --checkpoint s3a://bucket/word-count
    """
    require_spark()
    from ottla.exposition.protection import protection
    from ottla.spark.pipeline.home import Home, data_folder
    from ottla.spark.pipeline.runner import RunSettings
    from ottla.streams.engine.runner import ApplicationRunner
    from ottla.streams.loading import load_application

    if http is None and (http_users or http_certificate or http_key):
        raise click.UsageError("--http-users, --http-certificate and --http-key are for --http HOST:PORT.")
    if http_key is not None and http_certificate is None:
        raise click.UsageError("--http-key is given without --http-certificate.")
    protected = protection(http_certificate, http_key, http_users)

    def program() -> Application:
        found = load_application(file)
        return found if application_id is None else found.called(application_id)

    number = _version(settings, program(), data_folder(data_dir), reprocess=reprocess, reset=reset)

    def loaded() -> Application:
        return program().version(number)

    application = loaded()
    run_settings = RunSettings(
        client={f"kafka.{key}": value for key, value in settings.client_settings().items()},
        master=master,
        once=once,
        checkpoint=checkpoint,
        file=str(file.resolve()),
        conf=dict(parse_assignment(setting, "--conf") for setting in conf),
    )
    home = Home(data_folder(data_dir), application.id)
    reporter = reporter_for(application.id)
    runner = ApplicationRunner(application, run_settings, home, reporter, reload=loaded, creates_topics=create_topics)
    if reset:
        confirm(settings, f"Delete the state of '{application.id}' and write everything again, after what is there?")
        runner.reset()
    served = serving_metrics(home, metrics, reporter)
    with stopped_by_signals(runner), served, _queries(settings, application, http, protected, reporter):
        runner.run()


def _version(settings: Settings, program: Application, folder: Path, *, reprocess: bool, reset: bool) -> int:
    """Which run of the application goes on: the one in charge, or one that does all its work again."""
    from ottla.client.settings import parse_named
    from ottla.spark.pipeline.home import Home
    from ottla.streams.engine.versions import make_outputs, read_versions, write_versions

    home = Home(folder, program.id)
    versions = read_versions(home)
    if not reprocess:
        return versions.number(versions.in_charge)
    if reset:
        raise click.UsageError("--reprocess keeps the old run and starts a new one; --reset starts the old one over.")
    if not home.folder.is_dir():
        raise OttlaError(f"application '{program.id}' has not run here: there is nothing to process again.")
    versions = versions.with_next(program.topology, program.handling, home.read().topics)
    waiting = versions.waiting
    assert waiting is not None
    renamed = {
        versions.topics[versions.in_charge].get(name, name): new for name, new in versions.topics[waiting].items()
    }
    client = settings.client_settings()
    make_outputs(parse_named(client["bootstrap.servers"], client), renamed)
    write_versions(home, versions)
    return versions.number(waiting)


@contextmanager
def _queries(
    settings: Settings, application: Application, http: str | None, protected: Protection, reporter: Reporter
) -> Iterator[None]:
    if http is None:
        yield
        return
    from ottla.streams.engine.queries import StoreReader
    from ottla.streams.engine.query_http import serving_queries

    client = settings.client_settings()
    reader = StoreReader(application.topology, application.id, client["bootstrap.servers"], kafka=client)
    with serving_queries(application.topology, reader, http, protected) as url:
        reporter.event("http", f"{application.id}: stores at {url}/stores", address=url)
        yield
