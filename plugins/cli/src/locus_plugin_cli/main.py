"""The entry point: parses the command line, and turns whatever goes wrong into one line and an exit status."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NoReturn, TextIO

import click

from locus_plugin_cli import shadowing, status
from locus_plugin_cli.common_options import CommonOptions, common_options
from locus_plugin_cli.disk_full import is_full
from locus_plugin_cli.lazy import Root, resolve
from locus_plugin_cli.plain_output import write_whole
from locus_plugin_cli.streams import GuardedStream, Streams, print_error, say, standard

__all__ = ["invoke", "main", "root"]

#: Seconds that abandoned threads get to end by themselves.
PATIENCE = 0.5


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001  # click's signature
    if not value or ctx.resilient_parsing:
        return
    found = []
    for name in ("locus-core", "locus-plugin-cli"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} (not installed as a distribution)")
    write_whole(f"{', '.join(found)}, Python {sys.version.split()[0]}\n")
    ctx.exit()


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`locus COMMAND --help` says more about each.",
)
@common_options
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show versions.")
def root() -> None:
    """Run LLM agents: one loop, your tools, any model."""


assert isinstance(root, Root)
root.table = {
    "run": ("locus_plugin_cli.commands.run:run", "Run an agent on a prompt."),
    "chat": ("locus_plugin_cli.commands.chat:chat", "Talk with an agent."),
    "resume": (
        "locus_plugin_cli.commands.resume:resume",
        "Go on with a run that stopped in the middle, or with all of them.",
    ),
    "threads": (
        "locus_plugin_cli.commands.threads.group:threads",
        "The conversations that are kept, and what can be done with them.",
    ),
    "models": ("locus_plugin_cli.commands.models:models", "What the installed providers offer, and the default."),
    "plugins": ("locus_plugin_cli.commands.plugins:plugins", "List, show, order and check the installed plugins."),
    "plugin": ("locus_plugin_cli.commands.plugin:plugin", "Write a plugin of your own."),
    "config": ("locus_plugin_cli.commands.config:config", "Check the configuration, and trust it."),
}


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status; every error is one line on standard error."""
    with Streams():
        return _invoke(arguments)


def _invoke(arguments: Sequence[str]) -> int:
    given = CommonOptions()
    try:
        returned = root.main(list(arguments), prog_name="locus", standalone_mode=False, obj=given)
        standard().out.flush()
    except click.exceptions.NoArgsIsHelpError as e:
        e.show()
        return status.USAGE
    except click.UsageError as e:
        return _usage(e)
    except click.ClickException as e:
        if e.exit_code == status.CLOSED_PIPE:
            standard().abandon()
        else:
            say(e.format_message())
        return e.exit_code
    except click.Abort:
        say("stopped by Ctrl-C")
        return status.STOPPED
    except SystemExit:
        # A reader that went away while click wrote: it puts another stream in place of the broken one, and exits.
        if isinstance(sys.stdout, GuardedStream):
            raise
        standard().abandon()
        return status.CLOSED_PIPE
    # The last net: whatever a plugin or this package raises becomes one line.
    except Exception as e:  # noqa: BLE001
        if is_full(e):
            standard().abandon()
            say(f"the output cannot be written: {e.strerror}")
            return status.FAILED
        return _failed(e, debug=given.debug)
    return returned if type(returned) is int else status.OK


def _usage(error: click.UsageError) -> int:
    path = error.ctx.command_path if error.ctx is not None else "locus"
    text = error.format_message().rstrip(".")
    if isinstance(error, click.exceptions.NoSuchOption) and not error.possibilities:
        text += "; text that starts with '-' goes behind '--'"
    print_error(f"{path}: {text} (see {path} --help)\n")
    return status.USAGE


def _failed(error: Exception, *, debug: bool) -> int:
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "locus":
        # The kernel itself is missing or covered by a stranger, so nothing of it can explain the error.
        if debug:
            print_error("".join(traceback.format_exception(error)))
        say(f"{error}; {shadowing.explain_missing_kernel()}")
        return status.USAGE
    if debug:
        resolve("locus_plugin_cli.failures:show_trace")(error)
    code, text = resolve("locus_plugin_cli.failures:explain_error")(error)
    say(text)
    return int(code)


def _one_line_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say(f"warning: {message}")


def _leave(code: int) -> NoReturn:
    """Exit, also when a thread that cannot be stopped (a tool's body past its time) would hold the process."""
    with contextlib.suppress(ValueError):  # not the main thread: it hears no signals
        # From here on there is nothing to say: a Ctrl-C must not end in a traceback of the interpreter.
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(code))
    until = time.monotonic() + PATIENCE
    others = [t for t in threading.enumerate() if t is not threading.current_thread() and not t.daemon]
    for thread in others:
        thread.join(max(0.0, until - time.monotonic()))
    standard().settle()
    if any(thread.is_alive() for thread in others):
        with contextlib.suppress(OSError, ValueError):
            standard().out.flush()
            standard().err.flush()
        os._exit(code)
    sys.exit(code)


def _lenient(stream: Any) -> None:
    """What the terminal cannot show is shown escaped, instead of ending a run in the middle."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def main() -> NoReturn:
    """The ``locus`` script."""
    _lenient(sys.stdout)
    _lenient(sys.stderr)
    # For the whole life of the process: output at its very end is as untrusted as any other.
    Streams().install()
    if not sys.warnoptions:
        warnings.showwarning = _one_line_warning
    try:
        code = _invoke(sys.argv[1:])
    except KeyboardInterrupt:
        code = status.STOPPED
    _leave(code)
