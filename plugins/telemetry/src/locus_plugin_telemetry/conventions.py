"""Every name that leaves this plugin, in one table: the conventions are still moving.

They are those of the OpenTelemetry semantic conventions 1.44.0, as the package ``opentelemetry-semantic-conventions``
has them (a test compares the two), all of them in development. They have gone to a repository of their own since,
``open-telemetry/semantic-conventions-genai``, which renames metrics and had released nothing by November 2026.
Names that begin with ``locus.`` are this plugin's own, where the conventions have none.
"""

from __future__ import annotations

__all__ = ["PROVIDERS", "SCHEMA_URL", "VERSION"]

VERSION = "1.44.0"
SCHEMA_URL = f"https://opentelemetry.io/schemas/{VERSION}"

# -- operations, which begin the names of spans -----------------------------------------------------
INVOKE_AGENT = "invoke_agent"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
ITERATION = "iteration"  # not of the conventions

# -- attributes of the conventions --------------------------------------------------------------------
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_SEED = "gen_ai.request.seed"
REQUEST_STOP = "gen_ai.request.stop_sequences"
OUTPUT_TYPE = "gen_ai.output.type"
REQUEST_STREAM = "gen_ai.request.stream"
RESPONSE_ID = "gen_ai.response.id"
RESPONSE_MODEL = "gen_ai.response.model"
TIME_TO_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - a token of text
ERROR_TYPE = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"

# -- attributes of the conventions with content ---------------------------------------------------------
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

# -- metrics: name, unit, description, boundaries of buckets ----------------------------------------------
TOKEN_USAGE = (
    "gen_ai.client.token.usage",
    "{token}",
    "Number of input and output tokens used.",
    (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864),
)
OPERATION_DURATION = (
    "gen_ai.client.operation.duration",
    "s",
    "GenAI operation duration.",
    (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)
FIRST_CHUNK = (
    "gen_ai.client.operation.time_to_first_chunk",
    "s",
    "Time to receive the first chunk in a streaming operation.",
    (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)

# -- values ---------------------------------------------------------------------------------------------
FUNCTION = "function"
OTHER = "_OTHER"
CANCELLED = "cancelled"
#: What the conventions call a provider, by the scheme of the model's name; any other is called by its scheme.
PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gen_ai",
    "grok": "x_ai",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
#: Stop reasons of the kernel under the names of the conventions.
REASONS = {"tool_calls": "tool_call", "filter": "content_filter", "refusal": "content_filter"}

# -- this plugin's own ----------------------------------------------------------------------------------
RUN_ID = "locus.run_id"
SEGMENT = "locus.segment"
RESUMED = "locus.resumed"
NUMBER = "locus.iteration"
PURPOSE = "locus.purpose"
ATTEMPTS = "locus.attempts"
STARTED = "locus.tool.started"
INTERRUPTED = "locus.interrupted"
INTERRUPT_ID = "locus.interrupt.id"
STOP_REASON = "locus.stop_reason"
ITERATIONS = "locus.iterations"
TOOL_CALLS = "locus.tool_calls"
CONFIDENCE = "locus.confidence"
COST = "locus.cost_usd"
ATTEMPT = "locus.attempt"
PLUGIN = "locus.plugin"
HOOK = "locus.hook"
LINK = "locus.link"

OUTCOME = "locus.outcome"

# -- metrics of workers: name, unit, description, boundaries of buckets
WORKER_BUSY = ("locus.worker.busy", "{job}", "Jobs in the slots of a worker.")
WORKER_JOBS = ("locus.worker.jobs", "{job}", "Jobs that left their slot, by what became of them.")
WORKER_REDELIVERED = ("locus.worker.redelivered", "{job}", "Jobs that another worker had before and did not end.")
WORKER_DURATION = (
    "locus.worker.job.duration",
    "s",
    "How long a job was in its slot.",
    (0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0),
)

WORKFLOW_SPAN = "locus.workflow.iteration"
WORKFLOW_RUN = "locus.workflow.run"
WORKFLOW_STEP = "locus.workflow.step"
WORKFLOW_ITERATION = "locus.workflow.iteration"
WORKFLOW_ATTEMPT = "locus.workflow.attempt"
WORKFLOW_REDELIVERED = "locus.workflow.redelivered"
WORKFLOW_VERDICT = "locus.workflow.verdict"

EVENT_INTERRUPT = "locus.interrupt"
EVENT_CACHE_HIT = "locus.tool_cache_hit"
EVENT_RESTART = "locus.model_restart"
EVENT_HOOK_FAILED = "locus.hook_failed"
