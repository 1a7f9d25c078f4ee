"""Clients of transports on warm processes, shared by the tests of cc-messages and cc-server."""
