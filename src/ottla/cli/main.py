"""The `ottla` command: finds the verb, and turns whatever goes wrong into one sentence and an exit status.

0 done, 1 the operation failed, 2 the command line was wrong, 130 Ctrl-C, 143 SIGTERM. A reader that closes the pipe
early (`ottla consume t | head -3`) has what it wanted: that is no failure, in silence. This module and what it imports
stay light; verbs are imported when they are used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from ottla import __version__
from ottla.cli import interrupts, streams
from ottla.cli.entry import end_at_once
from ottla.cli.lazy import Lazy, LazyGroup, Section
from ottla.cli.settings import connection_options, dry_run_option, yes_option
from ottla.common.errors import OttlaError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
COMPLETION_VARIABLE = "_OTTLA_COMPLETE"

SECTIONS = (
    Section(
        "Run a broker",
        (
            Lazy("start", "start:start", "Start a broker in the foreground."),
            Lazy("registry", "registry:registry", "A schema registry: start."),
            Lazy("zookeeper", "zookeeper:zookeeper", "ZooKeeper for development: start."),
            Lazy("security", "security:security", "Certificates and ready settings: init, add-broker, renew."),
            Lazy("console", "console:console", "The cluster in the browser: topics, records, groups, health."),
        ),
    ),
    Section(
        "Records",
        (
            Lazy("produce", "produce:produce", "Send records to a topic."),
            Lazy("consume", "consume:consume", "Print the records of a topic."),
            Lazy("trace", "trace:trace", "Follow a record over topics and groups; watch a business process."),
        ),
    ),
    Section(
        "Look and change",
        (
            Lazy("topic", "topic:topic", "List, create, describe, alter, delete, trim topics."),
            Lazy("partition", "partition:partition", "Where replicas are, and who leads: move, elect, status."),
            Lazy("schema", "schema:schema", "Schemas of a registry: list, get, register, check, delete."),
            Lazy("group", "group:group", "Consumer groups: members, lag, seek."),
            Lazy("txn", "txn:txn", "Transactions: list, describe, find and abort hanging ones."),
            Lazy("config", "config:config", "Settings of topics, brokers and groups."),
            Lazy("top", "top:top", "Brokers, topics by rate and groups by lag, live."),
            Lazy("monitor", "monitor:monitor", "Judges the lag of all groups: metrics, JSON, webhooks."),
            Lazy("cluster", "cluster:cluster", "Brokers and health; a cluster on this machine."),
        ),
    ),
    Section(
        "Who may do what",
        (
            Lazy("user", "user:user", "Users who log in by SCRAM: list, create, passwd, delete."),
            Lazy("acl", "acl:acl", "Who may do what: list, add, remove."),
            Lazy("quota", "quota:quota", "How much clients may use: describe, set, remove."),
        ),
    ),
    Section(
        "Pipelines",
        (
            Lazy("pipeline", "pipeline:pipeline", "Pipelines on Spark: check, run, list, status, logs, stop, delete."),
            Lazy("streams", "streams_app:streams", "Topologies on Spark: run, describe, list, status, logs, delete."),
            Lazy("connect", "connect:connect", "Connectors on Spark: start, list, create, status, stop, offsets."),
        ),
    ),
    Section(
        "Tools",
        (
            Lazy("perf", "perf:perf", "Measure produce, consume and end-to-end speed."),
            Lazy("log", "log:log", "Look into segment files; let brokers log requests."),
            Lazy("completion", "completion:completion", "Print a completion script for your shell."),
        ),
    ),
)

EPILOG = "`ottla COMMAND --help` says more. Works with any Kafka cluster: -b HOST:PORT, or a --profile."


def build() -> click.Group:
    return LazyGroup(
        "ottla",
        sections=SECTIONS,
        params=[
            *connection_options(),
            dry_run_option(),
            yes_option(),
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_version,
                help="Print the version.",
            ),
        ],
        help="Kafka topics, records and groups from the command line.",
        epilog=EPILOG,
        subcommand_metavar="COMMAND ...",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"ottla {__version__}")
        ctx.exit()


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    status = run(list(sys.argv[1:] if arguments is None else arguments))
    end_at_once()  # what Python does from here on must not be interrupted by an exception
    sys.exit(status)


def run(arguments: list[str]) -> int:
    """The whole command with its exit status; never raises for a user's mistake."""
    streams.prepare()
    status = 0
    try:
        interrupts.install()
        status = _invoke(arguments)
        sys.stdout.flush()
    except click.UsageError as error:
        return _complain(_usage_sentence(error), EXIT_USAGE)
    except click.ClickException as error:
        return _complain(error.format_message(), EXIT_FAILED)
    except OttlaError as error:
        return _complain(str(error), EXIT_FAILED)
    except BrokenPipeError:
        streams.forget_stdout()
    except (click.Abort, KeyboardInterrupt):
        return _leave_interrupted()
    except OSError as error:
        return _complain(f"{error.filename or 'input or output'}: {error.strerror or error}.", EXIT_FAILED)
    return status


def _invoke(arguments: list[str]) -> int:
    command = build()
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        from click.shell_completion import shell_complete

        return shell_complete(command, {}, "ottla", COMPLETION_VARIABLE, instruction)
    try:
        with command.make_context("ottla", arguments) as context:
            command.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except Exception as error:
        from ottla.cli.error_sentences import explain

        if (explained := explain(error)) is None:
            raise
        raise explained from error
    return 0


def _usage_sentence(error: click.UsageError) -> str:
    message = error.format_message().strip().rstrip(".")
    path = error.ctx.command_path if error.ctx is not None else "ottla"
    return f"{message[:1].lower()}{message[1:]} (see '{path} --help')"


def _complain(sentence: str, status: int) -> int:
    from ottla.cli.output import notice

    try:
        sys.stdout.flush()
    except (BrokenPipeError, OttlaError):
        streams.forget_stdout()
    notice(f"ottla: {sentence}", colour="red")
    return status


def _leave_interrupted() -> int:
    try:
        sys.stdout.flush()
    except (BrokenPipeError, OttlaError, KeyboardInterrupt):
        streams.forget_stdout()
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    return EXIT_INTERRUPTED


if __name__ == "__main__":
    main()
