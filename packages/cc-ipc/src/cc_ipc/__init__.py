"""Tool calls across processes: framing, Unix-socket server, stdio bridge."""
