"""What attacks look like: in arguments (SQL, shell, paths), and in the results of tools.

Patterns catch what is copied from a textbook, and nothing else: they are the fence, not the lock. To be sure, bind
parameters, run no shell, open files below one folder only, and let a judge look at each call (the plugin
``steering``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from locus.core import Pattern

__all__ = ["injection", "markup", "path", "shell", "sql"]

_COMMANDS = (
    r"(?:rm|mv|cp|dd|curl|wget|ncat|nc|bash|zsh|ksh|dash|sh|python3?|perl|ruby|php|node|chmod|chown|sudo|su|eval|exec|cat|"
    r"kill|pkill|env|printenv|whoami|id|uname|base64|powershell|cmd|crontab|ssh|scp|nohup|mkfs|shutdown|reboot)"
)

_SQL = (
    r"['\"]\s*\)?\s*(?:or|and)\s+\(?\s*(?:['\"][^'\"\n]{0,40}['\"]?|\d+)\s*(?:=|<|>|like\b)",
    r"\b(?:or|and)\s+(?:1\s*=\s*1|'1'\s*=\s*'1|true\s*--)",
    r"\bunion\s+(?:all\s+)?select\b",
    r";\s*(?:drop\s+(?:table|database|schema|view|index|user|role)|delete\s+from|truncate\s+table|insert\s+into|"
    r"alter\s+(?:table|user|role|database)|update\s+\w+\s+set|exec(?:ute)?\s+\w|shutdown\s*(?:;|--|$)|grant\s+\w+\s+(?:on|to))",
    r"\w'\s*(?:--|#)\s*$",
    r"\b(?:xp_cmdshell|waitfor\s+delay|pg_sleep\s*\(|benchmark\s*\(\s*\d|into\s+(?:out|dump)file|load_file\s*\()",
    r"\b(?:and|or|select)\s+sleep\s*\(",
)
_SHELL = (
    rf"(?:;|&&|\|\|)\s*{_COMMANDS}(?:\s+(?:[-/~.$'\"]|https?:|\w+[./]\w)|\s*$)",
    r"(?:;|&&|\|\|)\s*(?:rm|chmod|chown|sudo|mkfs|reboot)\s+\S",
    r"\|\s*(?:sudo\s+)?(?:ba|z|k|da)?sh(?:\s+-|\s*$|\s*[;&|])",
    r"\|\s*(?:sudo\s+)?(?:python3?|perl|nc|ncat|tee\s+/\S*)(?:\s+-|\s*$)",
    rf"\$\(\s*{_COMMANDS}\b",
    rf"`\s*{_COMMANDS}(?:\s+[-/~.$'\"][^`\n]*)?`",
    rf"&\s*{_COMMANDS}\s+[-/~.$'\"]",
    r"\$\{?IFS\b",
    r"\brm\s+(?:-[a-z-]+\s+)*-[a-z]*[rf][a-z]*\s+\S",
    r"/dev/(?:tcp|udp)/|>\s*/dev/(?:sd|nvme|hd)|:\(\)\s*\{",
)
_PATH = (
    # One step up in the middle of a sentence is prose.
    r"(?:^|[^.\w\s])\.\.[/\\]|\.\.[/\\]+\.\.(?:[/\\]|$)|\A\s*\.\.\s*\z|\.{4}[/\\]{2}",
    r"%25(?:2e|2f|5c)",
    r"\.\.(?:%c0%af|%c1%9c|;/)",
    r"\x00",
    r"(?:^|[\s\"'=:(])(?:file://)?(?:/+\.)*/+(?:etc(?:/+\.)*/+(?:passwd|shadow|sudoers|ssh)|(?:root|proc/self)/|"
    r"var/run/docker\.sock)",
    r"(?:^|[\s\"'=:(/])~?/?\.(?:ssh|aws|gnupg|kube|netrc|docker/config)(?:/|$)",
    r"\b[a-z]:\\+(?:windows|users\\+[^\\]+\\+\.ssh)",
)
#: The tokens that chat templates are made of. A text that has them can pose as another speaker, or as a tool call, to a
#: model whose server does not escape them.
_MARKUP = (
    r"<\|[a-z0-9_▁ ]{2,40}\|>",
    r"</?(?:[a-z]+:)?(?:tool_calls?|tool_response|function_calls?|start_of_turn|end_of_turn)>",
    r"<(?:[a-z]+:)?(?:invoke|function)(?:=|\s+name=)[^>]{0,200}>",
    r"\[/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\]|<</?SYS>>",
)
_INJECTION = (
    r"\b(?:ignore|disregard|forget|override|bypass)\W+(?:\w+\W+){0,4}(?:previous|prior|above|earlier|preceding|all|your|system)"
    r"\W+(?:\w+\W+){0,2}(?:instructions?|prompts?|rules?|directions?|guidelines?|commands?)",
    r"\byou\s+(?:are\s+now|must\s+now|will\s+now)\s+(?:act|behave|respond|in\b|an?\b|the\b|call|use|send)",
    r"\b(?:new|updated|real)\s+(?:system\s+)?(?:instructions?|prompt)\s*:",
    # The templates of AgentDojo, https://github.com/ethz-spylab/agentdojo (attacks/)
    r"</?information>|\bthis\s+is\s+an?\s+important\s+message\s+from\s+(?:me|the)\b",
    r"\bbefore\s+you\s+(?:can\s+)?(?:solve|finish|continue|complete|start)\W+(?:\w+\W+){0,12}(?:please\W+)?(?:do|follow)\W+the\s+following",
    r"\bonly\s+follow\s+the(?:se)?\s+following\b|\bimportant\s*!{2,}",
    r"<?\b(?:system|admin|developer)\s+(?:message|notice|override)\s*[:>]",
    r"(?:^|[\s\"'])TODO:\s+(?:please\s+)?(?:send|forward|transfer|pay|e-?mail|post|delete|visit|click|invite|book|reserve|make|create|update|say)\b",
    r"\b(?:do\s+not|don't|never)\s+(?:tell|inform|mention\s+(?:this\s+)?to)\s+the\s+user\b",
)


def _finder(patterns: tuple[str, ...], summary: str) -> Callable[[str], Iterator[tuple[int, int]]]:
    pattern = Pattern("(?im)" + "|".join(f"(?:{each})" for each in patterns))

    def find(text: str) -> Iterator[tuple[int, int]]:
        return pattern.spans(text)

    find.__doc__ = summary
    return find


#: Between words SQL takes a comment for a space.
_SPACE = r"(?:\s|/\*[^*]*\*/)"
sql = _finder(tuple(each.replace(r"\s", _SPACE) for each in _SQL), "Pieces of SQL that break out of a value.")
shell = _finder(_SHELL, "Pieces of shell that chain or substitute commands, or destroy.")
path = _finder(_PATH, "Paths that lead upwards, or to places that hold secrets.")
markup = _finder(_MARKUP, "The control tokens of chat templates, and tool calls written as text.")
injection = _finder(_INJECTION, "Sentences that tell a model to change its instructions.")
