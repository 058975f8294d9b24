"""`ottla completion bash|zsh|fish`: the script that makes Tab complete verbs, options, topics and groups."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
      bash   eval "$(ottla completion bash)"                    in ~/.bashrc
      zsh    eval "$(ottla completion zsh)"                     in ~/.zshrc, after compinit
      fish   ottla completion fish > ~/.config/fish/completions/ottla.fish
    """
    from click.shell_completion import get_completion_class

    from ottla.cli.main import COMPLETION_VARIABLE, build

    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(build(), {}, "ottla", COMPLETION_VARIABLE)
    # source() of the bash class starts a bash to look at its version; the template needs none
    click.echo((made.source_template % made.source_vars()).strip())
