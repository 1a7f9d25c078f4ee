"""Record the answers of a real API in a cassette, and replay them.

- `settings`: `Cassette`, the public settings: path, mode, scrubbing, timing.
- `episodes`: requests with their answers, and the JSON file that holds them.
- `events`: server-sent events as JSON, and as bytes again.
- `scrub`: removal of credentials and ids.
- `replay`: the recorded answer of a request.
- `difference`: the error for a request that is not in the cassette.
- `recorder`: the connection to the upstream API.
- `tape`: the mode's choice between replaying and recording.

The modules know no pytest, no CLI and no scripted answers.
"""
