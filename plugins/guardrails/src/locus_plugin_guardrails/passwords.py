"""Secrets without a format, found by the names that they are assigned to: ``password=``, ``X-Api-Key:``, ``user:...@host``.

A name is common, so its value is judged. Of a password little is known: it has a digit or a sign, or is quoted behind a
name in capitals. A token is long and mixed. What a program or a manual writes in their place (``your-api-key``,
``${TOKEN}``, ``settings.password``, ``********``) is neither.
"""

# ruff: noqa: E501, RUF001, S105  # patterns are tables
from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from locus.core import Pattern

__all__ = ["is_placeholder", "passwords"]

_QUOTES = "\"'`"

#: Names of passwords, in the most common languages.
_PASSWORD = (
    r"(?:password|passwd|passphrase|passwort|kennwort|pwd|contraseña|contrasena|mot de passe|senha|wachtwoord|hasło|"
    r"parola|пароль|密码|密碼|パスワード|비밀번호)"
)
_TOKEN = (
    r"(?:secret|token|api[ _.-]?key|access[ _.-]?key|auth[ _.-]?key|account[ _.-]?key|private[ _.-]?key|secret[ _.-]?key|"
    r"encryption[ _.-]?key|signing[ _.-]?key|service[ _.-]?key|credentials?)"
)
#: Between a name and its value.
_IS = (
    r"(?:[\"'\]]{0,2}\s{0,3}(?:=>|:=|=|:|：)[ \t]{0,3}|[\"']\s{1,3}value=|>|\s{1,3}(?:is|lautet|ist|est|es|è|é)\s{1,3}|"
    r"は|是|为|為)"
)
_NAMED_PASSWORD = Pattern(rf"(?i){_PASSWORD}(?:[_-]?(?:prod|dev|test|value|[0-9]))?{_IS}")
_SHORT_PASSWORD = Pattern(r"(?i)(?:^|[^a-z0-9_-])(?:pw|pass)[ \t]{0,2}[=:][ \t]{0,3}")
_NAMED_TOKEN = Pattern(
    rf"(?i)(?:public[ _.-]?(?:key[ _.-]?)?)?{_TOKEN}(?:[_-]?(?:prod|dev|test|live|value|key|base64|[0-9]))?{_IS}"
)
#: Options and lines of programs, whose values follow a blank. The group is the value.
_OPTIONS = tuple(
    Pattern(each)
    for each in (
        r"(?i)(?:^|\s)--[a-z-]*(?:password|passwd|token|secret|api-key)[ =][\"']?([^\s\"']{4,200})",
        r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]{0,100}\s-p([^\s\"']{4,100})",
        r"\b(?:sshpass|docker login|redis-cli)\b[^\n|;]{0,100}\s-[pa] ?[\"']?([^\s\"']{4,200})",
        r"(?:\s-u|\s--user)[ =]?[\"']?[^\s:\"']{1,100}:([^\s\"']{3,200})",
        r"(?i)\blogin\s+\S{1,100}\s+password\s+(\S{4,200})",
    )
)
#: https://www.rfc-editor.org/rfc/rfc9110#name-authorization
_HEADER = Pattern(
    r"(?i)\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:basic|token|apikey|bearer)\s+([^\s\"',]{8,1000})"
)
#: https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1
_IN_URL = Pattern(r"://[^/\s:@]{0,200}:([^/\s:@]{3,200})@")

_VALUE = Pattern(r"^(?:\"[^\"\n]{1,400}|'[^'\n]{1,400}|`[^`\n]{1,400}|[^\s\"'`,;<>(){}\[\]]{1,400})")
_PLACEHOLDER = Pattern(
    r"(?i)^(?:your|my|the|some|insert|enter|put|change|replace|dummy|fake|sample|example|placeholder|todo|redacted|none|null"
    r"|undefined|true|false)(?:$|[^a-z0-9])|^(?:x+|\*+|\.+|-+|#+|•+)$|xxxx|\*\*\*|\.\.\.|…|your[_-]|changeme|change[_-]me|"
    r"replace[_-]?me|_here$|^[$%{<\[!@&]|^\\\$|^(?:pass|password|passwd|passw0rd|pwd|secret|token|user|username|string|str|"
    r"text|value|key|test|required|optional|hidden|empty)$"
)
_EXPRESSION = Pattern(
    r"^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|^[A-Za-z_][\w.]*[(\[]|^https?:|^arn:|^/[a-z]+(?:/|$)|^\.\.?/|::"
)
#: How many characters a password shall have, which languages without blanks write where its value could be.
_LENGTH = Pattern(r"^[0-9０-９]+(?:[-~〜～–至到から]+[0-9０-９]+)?(?:文字|字符|字元|桁|位|个|個|字|글자|자리|자\s)")
_NEXT = Pattern(r"&[\w.-]+=")
_CAPITALS = Pattern(r"[A-Z][A-Z0-9]*$")


def is_placeholder(value: str) -> bool:
    """Whether a value is a placeholder for a secret."""
    return len(set(value[-20:])) < 4 or _PLACEHOLDER.matches(value[:200])


def passwords(text: str) -> Iterator[tuple[int, int]]:
    """The spans of passwords and tokens that are named as such."""
    for start, end in _IN_URL.spans(text, 1) if "://" in text else ():
        if not is_placeholder(text[start:end]):
            yield start, end
    for pattern, judge in ((_NAMED_PASSWORD, _is_password), (_SHORT_PASSWORD, _is_password), (_NAMED_TOKEN, _is_token)):
        for start, end in pattern.spans(text):
            found = _value(text, end)
            if found is not None and judge(text[slice(*found)], text[start:end], quoted=text[end : found[0]] != ""):
                yield found
    for start, end in _HEADER.spans(text, 1):
        if not is_placeholder(text[start:end]):
            yield start, end
    for option in _OPTIONS if "-" in text or "login" in text else ():
        for start, end in option.spans(text, 1):
            value = text[start:end]
            if not (is_placeholder(value) or value.isdigit() or (value.islower() and value.isalpha())):
                yield start, end


def _value(text: str, at: int) -> tuple[int, int] | None:
    """Where the value is that begins here, without its quotes and the full stop of its sentence."""
    found = next(_VALUE.spans(text[at : at + 401]), None)
    if found is None:
        return None
    start, end = at, at + found[1]
    if text[start] in _QUOTES:
        return start + 1, end
    following = next(_NEXT.spans(text[start:end]), None)
    if following is not None:  # the next parameter of a query
        end = start + following[0]
    if end > start and text[end - 1] in ".:" and end - start > 1:
        end -= 1
    # A call or an index: the assigned value is an expression.
    return None if text[end : end + 1] in ("(", "[") else (start, end)


def _is_password(value: str, name: str, *, quoted: bool) -> bool:
    if len(value) < 4 or is_placeholder(value) or (not quoted and _EXPRESSION.matches(value)):
        return False
    if not quoted and _LENGTH.matches(value):
        return False
    digits, letters = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    if quoted and _CAPITALS.matches(name.rstrip("\"'] \t:=>")):
        return True
    if " " in value and not digits:
        return False  # a sentence about one
    if digits:
        return (letters and len(value) >= 5) or ("=" in name or quoted)
    return letters and len(value) >= 6 and any(not char.isalnum() and char not in "-_ ./=" for char in set(value))


def _is_token(value: str, name: str, *, quoted: bool) -> bool:
    if (
        name[:6].lower() == "public"
        or len(value) < 16
        or " " in value
        or is_placeholder(value)
        or _EXPRESSION.matches(value)
    ):
        return False
    digits, letters = sum(map(str.isdigit, value)), sum(map(str.isalpha, value))
    # A path or a name of several words has few digits and no capitals between small letters.
    if not digits or not letters or len(set(value)) < 8:
        return False
    return digits >= 3 or any(a.islower() and b.isupper() for a, b in pairwise(value))
