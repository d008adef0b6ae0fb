"""What a plugin author needs to prove a plugin: a scripted model, strategies and contracts.

Generators for property tests are in `locus_testkit.strategies`, a state machine for stores in
`locus_testkit.machines`; they are not imported here, because hypothesis is only for those who use it.
"""

from __future__ import annotations

import pytest

# Before the contracts are imported, so that a broken promise shows the values that broke it.
pytest.register_assert_rewrite("locus_testkit.contracts")

from locus_testkit.cassettes import (  # noqa: E402  # the line above must come first
    Cassette,
    CassetteError,
    CassetteExhausted,
    CassetteMismatch,
    CassetteMissing,
    CassetteModel,
    CassetteUnused,
    RecordMode,
    Scrubber,
)
from locus_testkit.clock import FakeClock  # noqa: E402  # the line above must come first
from locus_testkit.contracts import (  # noqa: E402  # the line above must come first
    BackendContract,
    BackendFeatures,
    Contract,
    ContractBroken,
    Differs,
    FeatureUnknown,
    FileStoreContract,
    GraphContract,
    JournalStoreContract,
    KnowledgeContract,
    ModelContract,
    ModelFeatures,
    PluginContract,
    SearchEngineContract,
    SearchResult,
    SentRequest,
    StoreFeatures,
    WorkerProcess,
    WorkflowContract,
    needs,
)
from locus_testkit.crashes import CrashingStore, FailingStore, SimulatedCrash, every_crash, is_crash  # noqa: E402  # the same
from locus_testkit.discovery import Discovery, DiscoveryRefused, TemporaryPlugins  # noqa: E402  # the same
from locus_testkit.engine import ToyEngine  # noqa: E402  # the same
from locus_testkit.history import (  # noqa: E402  # the same
    HistoryInvalid,
    assert_valid_history,
    assert_valid_request,
    history_problems,
)
from locus_testkit.network import NetworkGuard, NetworkRefused  # noqa: E402  # the same
from locus_testkit.scripted_model import (  # noqa: E402  # the same
    DEFAULT_USAGE,
    CallIds,
    ScriptedModel,
    ScriptExhausted,
    Turn,
    blocks_of,
    call,
    malformed_call,
    never,
)
from locus_testkit.stores import FullStore, InterceptedStore  # noqa: E402  # the same

__all__ = [
    "DEFAULT_USAGE",
    "BackendContract",
    "BackendFeatures",
    "CallIds",
    "Cassette",
    "CassetteError",
    "CassetteExhausted",
    "CassetteMismatch",
    "CassetteMissing",
    "CassetteModel",
    "CassetteUnused",
    "Contract",
    "ContractBroken",
    "CrashingStore",
    "Differs",
    "Discovery",
    "DiscoveryRefused",
    "FailingStore",
    "FakeClock",
    "FeatureUnknown",
    "FileStoreContract",
    "FullStore",
    "GraphContract",
    "HistoryInvalid",
    "InterceptedStore",
    "JournalStoreContract",
    "KnowledgeContract",
    "ModelContract",
    "ModelFeatures",
    "NetworkGuard",
    "NetworkRefused",
    "PluginContract",
    "RecordMode",
    "ScriptExhausted",
    "ScriptedModel",
    "Scrubber",
    "SearchEngineContract",
    "SearchResult",
    "SentRequest",
    "SimulatedCrash",
    "StoreFeatures",
    "TemporaryPlugins",
    "ToyEngine",
    "Turn",
    "WorkerProcess",
    "WorkflowContract",
    "assert_valid_history",
    "assert_valid_request",
    "blocks_of",
    "call",
    "every_crash",
    "history_problems",
    "is_crash",
    "malformed_call",
    "needs",
    "never",
]
