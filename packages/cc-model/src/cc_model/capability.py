"""`claude_code()`: makes model ids that begin with `claude-code:` known to an agent."""

from dataclasses import dataclass, field

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import KnownModelName, Model, ModelResolutionContext
from pydantic_ai.tools import AgentDepsT

from .model import ClaudeCodeModel
from .provider import ClaudeCodeProvider

__all__ = ["ClaudeCode", "claude_code"]

_PREFIX = "claude-code:"


@dataclass
class ClaudeCode(AbstractCapability[AgentDepsT]):
    """Resolves `claude-code:NAME`, where NAME is a model id or an alias, wherever an agent takes a model id."""

    provider: ClaudeCodeProvider | None = None
    """The processes; by default those of all models that were given none."""
    _models: dict[str, ClaudeCodeModel] = field(default_factory=dict[str, ClaudeCodeModel], init=False, repr=False)

    async def resolve_model_id(
        self, ctx: ModelResolutionContext[AgentDepsT], *, model_id: KnownModelName | str
    ) -> Model | None:
        """The model behind a `claude-code:` id; None leaves other ids to others."""
        if not model_id.startswith(_PREFIX):
            return None
        name = model_id.removeprefix(_PREFIX)
        if name not in self._models:
            self._models[name] = ClaudeCodeModel(name, provider=self.provider)
        return self._models[name]

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: an open pool of processes cannot be written down."""
        return None


def claude_code(*, provider: ClaudeCodeProvider | None = None) -> ClaudeCode[object]:
    """Return the capability for `Agent("claude-code:sonnet", capabilities=[claude_code()])`.

    Args:
        provider: The processes; by default those of all models that were given none.
    """
    return ClaudeCode(provider)
