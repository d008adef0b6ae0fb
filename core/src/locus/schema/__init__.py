"""Schemas: from Python types to JSON Schema, and from plain data to checked values.

A model reads JSON Schema and writes JSON; a tool takes Python values and an agent's answer is one. This package is
all that lies between. It imports nothing else of the kernel but `locus.core.errors`, `locus.core.patterns` and
`locus.core.lazy`, by which the kernel imports a module on first use, so it can be read, tested and used on its own::

    from locus import schema

    adapter = schema.of(list[Point])
    adapter.schema                     # {"type": "array", "items": {"type": "object", ...}}
    adapter.check([{"x": "3"}])        # [Point(3)], or ValidationError with every problem and its path

**Three entrances.** `of` adapts a type, `of_json_schema` a schema that was written elsewhere and has no Python
type, and `parameters_of(read_signature(fn), ...)` a function, whose parameters are one object. Each adapter has a
``schema`` and checks data. Below them:

- `signatures` finds the real types of a callable's parameters, however it is wrapped and however they are written, and
  takes its docstring apart.
- `msgspec_adapters` teaches msgspec the types that it does not take: unions of classes, attrs classes with converters,
  pydantic models, classes that hold themselves.
- `adapter` makes the schema, one document without references as far as possible.
- `checking` finds every problem of data under a schema, and puts right what local models get wrong.
- `jsonschema` holds what both know of JSON Schema as data; `canonical`, the key by which equal calls are recognised.

**Strict first, then lenient, then explained.** Conversion by msgspec is the authority and takes about a microsecond;
it stops at the first fault. Only what it refuses is looked at again in Python: `normalise` reads ``"3"`` as 3 where
an integer is wanted and a string is not, and conversion is tried once more. What is refused again is walked through
by `find_problems`, which names every fault with its path, what was found and what is valid, because a model that
reads all of them at once repairs its call in one turn.

**The checker is our own.** Three libraries that validate against plain JSON Schema were measured (Python 3.12; our
own checker takes 21 us for an object of four properties, and nothing to import):

============================  =========  =========  ==========  ====================================================
library                       import     a check    installed   what a fault says
============================  =========  =========  ==========  ====================================================
jsonschema-rs 0.60            22 ms      0.2 us     15 MB       "3 is not valid under any of the schemas listed in
                                                                the 'anyOf' keyword"
jsonschema 4.26               59 ms      39 us      2.6 MB      "3 is not valid under any of the given schemas"
fastjsonschema 2.22           14 ms      2.4 us     0.3 MB      the first fault only; it compiles Python source from
                                                                the schema (1.9 ms)
============================  =========  =========  ==========  ====================================================

None of them may be given a schema of strangers. In jsonschema-rs data nested 100,000 deep ends the process with a
segmentation fault, and a schema of 26 definitions, each of which names the next one twice, takes 0.8 s, twice as much
for each further one, in one call that holds the interpreter's lock and cannot be cancelled; both fetch remote
references unless told otherwise. And none makes this code unnecessary: the messages with the nearest valid name, the
leniency and the description of what is expected would stay, in front of a second opinion of what is valid. Speed is
not the point either, since valid data never comes here. So the checker implements the assertions of draft 2020-12
itself, within bounds (depth, schemas visited, problems named), and ``jsonschema`` is the oracle of its property tests.
What it does not know (``format``, ``unevaluated*``, ``$dynamicRef``) restricts nothing.

**Schemas of strangers**, such as those of tools behind a protocol, are not checked in depth by anybody here: a
`JsonSchemaAdapter` is given the names and the plain types at their top, and the author of the schema checks the rest.
No reference is ever fetched; a pattern of a stranger is never matched.

**What was rejected.** pydantic as the engine: a fifth of a second of imports in each process, to serve classes that
most programs do not have; its models are served by their own two methods, without importing it. cattrs, which the
rest of the kernel has: it makes no schemas. Checking with the schema alone, and no msgspec: dates, enums and classes
would have to be made by hand. Defaults filled in by the model's JSON: a default is the function's own object,
whatever it is.
"""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.schema.adapter import InvalidSchema as InvalidSchema
    from locus.schema.adapter import JsonSchemaAdapter as JsonSchemaAdapter
    from locus.schema.adapter import TypeAdapter as TypeAdapter
    from locus.schema.adapter import UnsupportedType as UnsupportedType
    from locus.schema.adapter import of as of
    from locus.schema.adapter import of_json_schema as of_json_schema
    from locus.schema.arguments import Parameters as Parameters
    from locus.schema.arguments import parameters_of as parameters_of
    from locus.schema.canonical import call_key as call_key
    from locus.schema.checking import Problem as Problem
    from locus.schema.checking import ValidationError as ValidationError
    from locus.schema.checking import explain as explain
    from locus.schema.checking import find_problems as find_problems
    from locus.schema.checking import normalise as normalise
    from locus.schema.jsonschema import Schema as Schema
    from locus.schema.jsonschema import admits as admits
    from locus.schema.jsonschema import describe as describe
    from locus.schema.jsonschema import kind_of as kind_of
    from locus.schema.jsonschema import subschemas as subschemas
    from locus.schema.signatures import Signature as Signature
    from locus.schema.signatures import read_signature as read_signature
    from locus.schema.text import clean_text as clean_text
    from locus.schema.text import join_names as join_names
    from locus.schema.text import safe_repr as safe_repr

_MODULES = {
    "locus.schema.adapter": (
        "InvalidSchema",
        "JsonSchemaAdapter",
        "TypeAdapter",
        "UnsupportedType",
        "of",
        "of_json_schema",
    ),
    "locus.schema.arguments": ("Parameters", "parameters_of"),
    "locus.schema.canonical": ("call_key",),
    "locus.schema.checking": ("Problem", "ValidationError", "explain", "find_problems", "normalise"),
    "locus.schema.jsonschema": ("Schema", "admits", "describe", "kind_of", "subschemas"),
    "locus.schema.signatures": ("Signature", "read_signature"),
    "locus.schema.text": ("clean_text", "join_names", "safe_repr"),
}

__all__ = [name for names in _MODULES.values() for name in names]
__getattr__, __dir__ = exports(__name__, _MODULES)
