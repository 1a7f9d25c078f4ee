"""Parts that need no server: events, the file, scrubbing, the difference."""

import json
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from cc_loopback import CassetteError, JsonObject
from cc_loopback.recording.episodes import Episode, Episodes, RecordedAnswer, RecordedRequest, load, save
from cc_loopback.recording.events import Event, encode_event_or_text, event_blocks, parse_event, parse_json
from cc_loopback.recording.replay import lines_of, not_recorded
from cc_loopback.recording.scrub import Scrubber

PING = b'event: ping\ndata: {"type":"ping"}\n\n'
DELTA = 'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"text":"ü\u2028"}\n\n'.encode()
UNUSUAL = [
    b": a comment\n\n",
    b"data: no name\n\n",
    b"event: ping\ndata: [1]\n\n",
    b'event: other\ndata: {"type":"ping"}\n\n',
    b'event: ping\ndata: {"type":\ndata: "ping"}\n\n',
    b'event: ping\ndata: {"type":"ping","text":"\\ud800"}\n\n',
    b"event: ping\r\ndata: {\r\n\r\n",
]


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_a_stream_in_any_pieces_gives_the_same_events(size: int) -> None:
    whole = b"".join([PING, DELTA, *UNUSUAL, PING, PING[:-1]])

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(whole), size):
            yield whole[at : at + size]

    assert [block async for block in event_blocks(pieces())] == [PING, DELTA, *UNUSUAL, PING, PING[:-1]]


def test_events_come_out_as_they_went_in() -> None:
    events = [parse_event(block) for block in [PING, DELTA, *UNUSUAL]]
    assert [type(event) for event in events] == [dict, dict, *[str] * len(UNUSUAL)]
    assert [encode_event_or_text(event) for event in events] == [PING, DELTA, *UNUSUAL]
    padded = PING.replace(b'{"type":"ping"}', b'{"type": "ping" }   ')
    assert encode_event_or_text(parse_event(padded)) == PING


def test_text_that_is_not_json_stays_text() -> None:
    assert [parse_json(text) for text in ("<html>", '"\\ud800"', "[1.5]")] == ["<html>", '"\\ud800"', [1.5]]


def test_a_file_has_one_line_for_each_event_and_is_read_back(tmp_path: Path) -> None:
    """LOOP-50."""
    path = tmp_path / "new" / "folder" / "one.json"
    body: JsonObject = {"b": "long " * 30, "a": ["\ud800", "ü", None], "empty": []}
    event: Event = {"type": "ping"}
    stream = RecordedAnswer(200, {}, events=[(0.25, event), (0.0, "x" * 90)], cut=True)
    refusal = RecordedAnswer(529, {"retry-after": "1"}, 0.5, "busy")
    episodes = [
        Episode(RecordedRequest("POST", "/v1/messages", {}, body), stream),
        Episode(RecordedRequest("GET", "/v1/models", {"limit": "1"}), refusal, "2020-02-02"),
    ]
    save(path, Episodes("oauth", episodes))
    assert load(path) == Episodes("oauth", episodes)
    text = path.read_text("utf-8")
    assert '          {"after": 0.25, "data": {"type": "ping"}},\n' in text
    assert text.index('"b": ') < text.index('"a": ')
    assert max(len(line) for line in text.splitlines()) < 200
    assert [file.name for file in path.parent.iterdir()] == ["one.json"]
    with pytest.raises(CassetteError, match="cannot write the cassette"):
        save(path / "below.json", Episodes())


def test_a_secret_in_several_pieces_is_removed_from_all() -> None:
    """LOOP-55."""
    key = "sk-ant-api03-0123456789"
    scrubber = Scrubber({}, {})
    events = [(0.0, delta(0, "text", "I say "))]
    events += [(0.1, delta(1, "text", piece)) for piece in ("Use ", key[:9], key[9:15], key[15:], " now.")]
    texts = [event["delta"]["text"] for _, event in scrubber.events(events) if isinstance(event, dict)]
    assert texts == ["I say ", "Use <removed> now.", "", "", "", ""]
    assert [after for after, _ in scrubber.events(events)] == [after for after, _ in events]


def delta(index: int, field: str, text: str) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": f"{field}_delta", field: text}}


def test_the_difference_of_long_texts_shows_the_changed_part_only() -> None:
    """LOOP-56."""
    image = "A" * 50_000
    old = RecordedRequest("POST", "/v1/messages", {}, {"data": image, "text": "one\ntwo", "n": 1})
    new = RecordedRequest("POST", "/v1/messages", {}, {"data": image[:-1] + "B", "text": "one\nTWO", "n": 1})
    other = RecordedRequest("POST", "/v1/messages", {}, {"n": 1})
    lines = not_recorded(Path("c.json"), new, [other, old]).splitlines()
    assert "c.json" in lines[0]
    assert [line.strip("+- ")[-3:] for line in lines if line[0] in "+-"][2:] == ['AA"', 'AB"', "two", "TWO"]
    assert len(lines) < 30
    lines = lines_of(RecordedRequest("POST", "/x", {}, {"n": list(range(500))}))
    assert all(len(a) <= 102 and len(b) <= 102 for a, b in pairwise(lines))
    long = not_recorded(
        Path("c.json"), RecordedRequest("GET", "/x", {}, {"n": list(range(500))}), [RecordedRequest("GET", "/x")]
    )
    assert long.splitlines()[-2].startswith("... and ")
    assert len(long.splitlines()) < 70


def test_a_loaded_cassette_is_ordinary_json(tmp_path: Path) -> None:
    save(tmp_path / "one.json", Episodes())
    assert json.loads((tmp_path / "one.json").read_text("utf-8")) == {"format": 1, "login": "api-key", "episodes": []}
