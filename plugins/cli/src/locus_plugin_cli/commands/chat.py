"""``locus chat``: a conversation on one thread."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import attrs
import click

from locus.core.errors import InputError, LocusError, closest
from locus.core.messages import Role, Usage
from locus.core.state import AgentState
from locus_kit.state import state_folder
from locus_plugin_cli import status
from locus_plugin_cli.approval_prompt import is_person_present
from locus_plugin_cli.common_options import CommonOptions, common_options
from locus_plugin_cli.continuing import choose_thread, take_up
from locus_plugin_cli.conversation import Conversation
from locus_plugin_cli.disk_full import is_full
from locus_plugin_cli.failures import explain_error, explain_result, show_trace
from locus_plugin_cli.interrupted_threads import mention_interrupted
from locus_plugin_cli.line_history import LineHistory
from locus_plugin_cli.message_input import read_message
from locus_plugin_cli.one_turn import open_journals
from locus_plugin_cli.options import AgentOptions, agent_options
from locus_plugin_cli.output import Output, print_text, say
from locus_plugin_cli.project import Project
from locus_plugin_cli.session import Session
from locus_plugin_cli.streams import print_error
from locus_plugin_cli.text import format_tokens, one_line, shorten
from locus_plugin_cli.view.tally import count_of
from locus_plugin_cli.view.text import TextView

__all__ = ["chat"]

_HELP = """\
/help           this list
/tokens         tokens of this sitting
/system [TEXT]  show the system prompt, or set it from the next turn on
/compact        a summary takes the place of what was said before, for the model; the thread keeps all of it
/new            begin another conversation
/quit           leave; so do exit, quit and Ctrl-D
//TEXT          a message that begins with a slash
Tab completes these, and the arrow keys find what was typed before, here and in other chats.
A line that ends with \\ goes on in the next; what is pasted is one message. Ctrl-C stops a running turn."""

#: How many turns of a conversation that goes on are shown.
_SHOWN_TURNS = 2

_COMMANDS = ("help", "tokens", "system", "compact", "new", "quit", "exit")

#: What leaves without a slash, on a terminal.
_LEAVING = ("exit", "quit")


@click.command(short_help="Talk with an agent.")
@agent_options
@common_options
@click.pass_context
def chat(ctx: click.Context, *, options: AgentOptions) -> int:
    """Talk with an agent, turn by turn, on one conversation. /help says what can be typed.

    Exit status: 0; 1 when a turn failed and the input was no terminal; 2 when the command line, the
    configuration or a plugin is wrong.
    """
    given = ctx.ensure_object(CommonOptions)
    if options.newest and (options.thread is not None or options.no_keep):
        raise click.UsageError(f"--continue excludes {'--no-keep' if options.thread is None else '--thread'}", ctx)
    project = Project.of(given)
    with open_journals(options, project) as journals:
        mention_interrupted(journals, options.thread)
        chosen, project, before = take_up(journals, choose_thread(journals, options), given, project)
        session = Session.open(chosen, project, journals)
        conversation = Conversation(session, TextView(header=False), asks=True)
        talk = _Talk(conversation, _history(keeps=not options.no_keep), debug=given.debug)
        print_error(f"{one_line(session.model.name)}; /help says what can be typed, Ctrl-D leaves\n")
        if before is not None and is_person_present():
            _show_last_turns(before)
        code = talk.go_on()
        if is_person_present() and journals.kept.lasting and talk.said_anything:
            store = () if journals.kept.text is None else ("--checkpointer", journals.kept.text)
            say(f"go on with: {shlex.join(['locus', 'chat', '--thread', conversation.session.thread, *store])}")
        return code


def _history(*, keeps: bool) -> LineHistory:
    """The lines of this chat and of those before, where a person types them."""
    file: Path | None = None
    if keeps:
        with suppress(RuntimeError):
            file = state_folder() / "chat_lines"
    history = LineHistory(file, [f"/{name}" for name in _COMMANDS])
    if is_person_present():
        history.open()
    return history


def _show_last_turns(state: AgentState) -> None:
    """The end of a conversation that goes on, shortened: what was asked, and what was answered."""
    out = Output()
    said = [m for m in state.messages if m.role in (Role.USER, Role.ASSISTANT) and m.text.strip()]
    asked = [i for i, message in enumerate(said) if message.role is Role.USER][-_SHOWN_TURNS:]
    shown = said[asked[0] :] if asked else []
    if left_out := len(said) - len(shown):
        out.piece(f"({count_of(left_out, 'earlier message')}: locus threads show ID --messages)\n", "dim")
    for message in shown:
        mark = "> " if message.role is Role.USER else ""
        out.piece(f"{mark}{shorten(message.text)}\n", "dim")


class _Talk:
    """The turns and commands of one sitting."""

    def __init__(self, conversation: Conversation, history: LineHistory, *, debug: bool) -> None:
        self._conversation = conversation
        self._history = history
        self._debug = debug
        self._usage = Usage()
        self._turns = 0
        self._failed = False

    @property
    def said_anything(self) -> bool:
        """Whether there was a turn."""
        return self._turns > 0

    def go_on(self) -> int:
        """Read and answer until the input ends; the exit status."""
        while True:
            try:
                if not self._step():
                    break
            except EOFError:
                if is_person_present():
                    print_text("\n")
                break
            except KeyboardInterrupt:
                # During a turn Ctrl-C stops that turn; here it drops what was typed.
                print_text("\n(Ctrl-D or /quit leaves)\n")
            except UnicodeDecodeError as e:
                raise InputError(f"the input is no {e.encoding} text: {e.reason} at position {e.start}") from None
        return status.FAILED if self._failed and not is_person_present() else status.OK

    def _step(self) -> bool:
        """Read one message and answer it, or obey it; False to leave."""
        text = read_message("> ", self._history)
        if text.strip() in _LEAVING and is_person_present():
            return False
        if text.startswith("/") and not text.startswith("//"):
            return not self._command(text[1:].strip())
        if text.strip():
            self._turn(text[1:] if text.startswith("//") else text)
        return True

    def _turn(self, text: str) -> None:
        try:
            turn = self._conversation.say(text)
        # A turn that cannot be taken (a busy thread, a defect in a plugin) must not end the conversation.
        except Exception as e:
            if isinstance(e, click.ClickException) or is_full(e):
                raise
            self._wrong(explain_error(e)[1], e)
            return
        self._usage += turn.tally.usage
        self._turns += 1
        if turn.stopped:
            say(f"stopped by Ctrl-C after {turn.tally.sentence()}")
        elif turn.result is not None and turn.result.failed:
            self._wrong(f"the turn failed: {explain_result(turn.result)}", turn.result.error)
        elif turn.result is not None and turn.result.interrupts:
            say("the question is still open; another message leaves it unanswered")

    def _wrong(self, text: str, error: object) -> None:
        self._failed = True
        if self._debug:
            show_trace(error)
        say(text)

    def _command(self, text: str) -> bool:
        """Obey a slash command; True to leave."""
        name, _, rest = text.partition(" ")
        match name:
            case "quit" | "exit":
                return True
            case "help":
                print_text(f"{_HELP}\n")
            case "tokens":
                print_text(f"{count_of(self._turns, 'turn')}, {format_tokens(self._usage)}\n")
            case "system":
                self._set_system(rest.strip())
            case "compact":
                self._compact()
            case "new":
                self._conversation.session = attrs.evolve(
                    self._conversation.session, thread=f"thread-{uuid4().hex[:12]}"
                )
                print_text("a new conversation\n")
            case _:
                near = closest(name, _COMMANDS)
                hint = f"did you mean /{near}?" if near else "/help lists the commands"
                say(f"no command /{one_line(name)}; {hint}; //TEXT sends text that begins with a slash")
        return False

    def _compact(self) -> None:
        compaction = self._conversation.session.compaction
        if compaction is None or not compaction.manages:
            say("[agent] conversation or [plugins.conversation] in the configuration decides what the model sees")
            return
        compaction.want()
        print_text("with your next message, a summary takes the place of the older ones for the model\n")

    def _set_system(self, text: str) -> None:
        if not text:
            print_text(f"{self._system_now() or '(none)'}\n")
            return
        try:
            self._conversation.speak_as(text)
        except LocusError as e:
            self._wrong(explain_error(e)[1], e)

    def _system_now(self) -> str | None:
        session = self._conversation.session
        if self._conversation.system is not None:
            return self._conversation.system
        configured = session.project.config.agent.get("system_prompt")
        return session.options.system_prompt or configured
