"""Claude Code as a LangChain chat model: `ChatClaudeCode`.

LangChain's own Anthropic class maps messages, tools, streams and output; cc-messages' transport answers the requests.
"""

from .chat_model import ChatClaudeCode

__all__ = ["ChatClaudeCode"]
