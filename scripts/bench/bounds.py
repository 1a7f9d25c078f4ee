"""Bounds of the benchmarks, by suite, group and name of the figure. A figure listed here must meet its bound."""

from harness.figures import Bound

BOUNDS = {
    # MSG-50
    ("text", "Warm run, in multiples of its parts", "run / bare turn and run with AnthropicModel"): Bound(
        "median", 1.0
    ),
    ("text", "Processor time of the Python process, without that for AnthropicModel", "ClaudeCodeModel"): Bound(
        "median", 3.0
    ),
    ("text", "Times as long as ClaudeCodeModel", "claude_agent_sdk.query()"): Bound("median", 10.0, least=True),
    ("text", "Times as long as ClaudeCodeModel", "pydantic-ai-claude-code"): Bound("median", 10.0, least=True),
    ("tool", "Times as long as ClaudeCodeModel", "pydantic-ai-claude-code"): Bound("median", 10.0, least=True),
    # MSG-51
    ("tool", "Warm run, in multiples of its parts", "run / two bare turns and run with AnthropicModel"): Bound(
        "median", 1.1
    ),
    # MSG-52
    ("independent", "Times as long as ClaudeCodeModel", "claude_agent_sdk.query()"): Bound("median", 8.0, least=True),
    ("stream", "Processor time for 100 deltas, without that for AnthropicModel", "ClaudeCodeModel"): Bound(
        "median", 1.0
    ),
    ("bytes", "Bytes beyond 1.1 times those of AnthropicModel, short prompt", "ClaudeCodeModel"): Bound("median", 600),
    ("bytes", "Bytes beyond 1.1 times those of AnthropicModel, 20 KB prompt", "ClaudeCodeModel"): Bound("median", 600),
    ("import", "Modules, by -X importtime", "modules of this project"): Bound("ratio", 0.15),
    # SES-79
    ("session_turn", "Warm turn with events", "Session.run"): Bound("ratio", 1.3),
    ("session_turn", "Warm turn without events", "Session.run"): Bound("ratio", 1.3),
    # SES-80
    ("session_pool", "Lease of a session that was started ahead", "SessionPool"): Bound("median", 5.0),
    # SES-81
    ("session_pool", "Throughput of the pool, in multiples of the SDK's", "SessionPool"): Bound(
        "median", 12.0, least=True
    ),
    # IPC-P-70
    ("ipc", "Ready: spawn to the answer of tools/list", "cc-ipc's bridge"): Bound("median", 40.0),
    ("ipc", "Server on the mcp library, in multiples of the bridge", "server on the mcp library"): Bound(
        "median", 10.0, least=True
    ),
    # IPC-P-71
    ("ipc", "Round trip of 1 KB, client and server in one event loop", "cc-ipc: IPCClient, IPCServer"): Bound(
        "median", 0.3
    ),
    ("ipc", "Round trip of 1 KB, 99th percentile", "cc-ipc: IPCClient, IPCServer"): Bound("median", 1.0),
    # IPC-P-72
    ("ipc", "Round trip of 5 MB, one text", "cc-ipc: MCP client, bridge, handler"): Bound("ratio", 2.0),
    ("ipc", "Round trip of 5 MB, small values", "cc-ipc: MCP client, bridge, handler"): Bound("ratio", 2.0),
    # Time for 10,000 results
    ("convert", "Convert 10,000 results of five messages", "cc-convert"): Bound("median", 1.0),
    ("convert", "Convert 10,000 results of five messages, in multiples of validation", "cc-convert"): Bound(
        "median", 1.5
    ),
}
