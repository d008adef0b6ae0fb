"""One contract class a protocol, one test a promise: subclass it, and pytest proves your implementation."""

from __future__ import annotations

from locus_testkit.contracts._worker_process import WorkerProcess
from locus_testkit.contracts.backend import BackendContract, BackendFeatures, FileStoreContract
from locus_testkit.contracts.base import Contract, ContractBroken
from locus_testkit.contracts.features import FeatureUnknown, needs
from locus_testkit.contracts.graph import GraphContract
from locus_testkit.contracts.knowledge import KnowledgeContract
from locus_testkit.contracts.model import Differs, ModelContract, ModelFeatures, SentRequest
from locus_testkit.contracts.plugin import PluginContract
from locus_testkit.contracts.search import SearchEngineContract, SearchResult
from locus_testkit.contracts.store import JournalStoreContract, StoreFeatures
from locus_testkit.contracts.workflow import WorkflowContract

__all__ = [
    "BackendContract",
    "BackendFeatures",
    "Contract",
    "ContractBroken",
    "Differs",
    "FeatureUnknown",
    "FileStoreContract",
    "GraphContract",
    "JournalStoreContract",
    "KnowledgeContract",
    "ModelContract",
    "ModelFeatures",
    "PluginContract",
    "SearchEngineContract",
    "SearchResult",
    "SentRequest",
    "StoreFeatures",
    "WorkerProcess",
    "WorkflowContract",
    "needs",
]
