"""`Accounts`: what the runs of each user have used today, which the journals know also after a restart."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import anyio
from attrs import define, field

from locus.core.errors import NothingToResume
from locus.core.messages import Usage
from locus.journal import JournalStore, ThreadQuery, read_history
from locus_plugin_serve.problems import Problem
from locus_plugin_serve.settings import ServeSettings
from locus_plugin_serve.users import ThreadName

__all__ = ["USER_ENTRY", "Account", "Accounts"]

#: The entry of a thread's metadata with its user.
USER_ENTRY = "serve.user"

_PAGE = 200


@define
class Account:
    """What a user has used on one day, UTC.

    Args:
        day: its midnight.
        tokens: of model calls.
        dollars: of model calls whose price is known.
        is_read: the journals' part of it is there.
        reading: held while that is read.
    """

    day: datetime
    tokens: int = 0
    dollars: float = 0.0
    is_read: bool = False
    reading: anyio.Lock = field(factory=anyio.Lock)

    def add(self, usage: Usage) -> None:
        """Charge a model call."""
        self.tokens += usage.prompt_tokens + usage.completion_tokens
        self.dollars += usage.cost or 0.0


class Accounts:
    """The accounts of all users.

    Args:
        settings: the limits.
        store: where the runs are.
    """

    def __init__(self, settings: ServeSettings, store: JournalStore) -> None:
        self._settings, self._store = settings, store
        self._accounts: dict[str, Account] = {}

    @property
    def has_limits(self) -> bool:
        """Whether anything is limited; else nothing is counted."""
        return self._settings.user_tokens_a_day is not None or self._settings.user_dollars_a_day is not None

    async def admit(self, user: str) -> None:
        """Let a user begin a run.

        Raises:
            Problem: the user has used up the day's tokens or dollars.
        """
        if not self.has_limits:
            return
        account = self._today(user)
        async with account.reading:
            if not account.is_read:
                await self._read(user, account)
                account.is_read = True
        spent = self.spent_limit(user)
        if spent:
            left = account.day + timedelta(days=1) - datetime.now(UTC)
            raise Problem.of_limit(
                f"{spent}; the next day begins at midnight UTC",
                code="limit_reached",
                seconds=max(1, math.ceil(left.total_seconds())),
            )

    def charge(self, user: str, usage: Usage) -> str:
        """Charge a model call; gives the limit that is used up by now, as a sentence, or ``""``."""
        if not self.has_limits:
            return ""
        self._today(user).add(usage)
        return self.spent_limit(user)

    def spent_limit(self, user: str) -> str:
        """The limit that a user has used up, as a sentence, or ``""``."""
        account, tokens, dollars = (
            self._today(user),
            self._settings.user_tokens_a_day,
            self._settings.user_dollars_a_day,
        )
        if tokens is not None and account.tokens >= tokens:
            return f"the {tokens:,} tokens a day of this user are used up"
        if dollars is not None and account.dollars >= dollars:
            return f"the ${dollars:g} a day of this user are used up"
        return ""

    def _today(self, user: str) -> Account:
        day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        account = self._accounts.get(user)
        if account is None or account.day != day:
            account = self._accounts[user] = Account(day)
        return account

    async def _read(self, user: str, account: Account) -> None:
        """Add what the journals say about the day so far; what is charged meanwhile is in them later than now."""
        before, after = (account.tokens, account.dollars), None
        account.tokens, account.dollars = 0, 0.0
        while True:
            query = ThreadQuery(metadata={USER_ENTRY: user}, limit=_PAGE, after=after)
            page = await self._store.threads(query)
            for info in page:
                if info.updated_at is not None and info.updated_at < account.day:
                    return  # the newest come first
                if ThreadName.parse(info.thread_id) is None:
                    continue  # of a child run: its parent's thread has what it used
                try:
                    history = await read_history(self._store, info.thread_id)
                except NothingToResume:
                    continue
                for entry in history:
                    if entry.at >= account.day:
                        account.add(entry.usage)
            if len(page) < _PAGE:
                break
            after = page[-1].thread_id
        # A run that goes on was charged for calls that no transition has yet: the larger of both is nearer.
        account.tokens, account.dollars = max(account.tokens, before[0]), max(account.dollars, before[1])
