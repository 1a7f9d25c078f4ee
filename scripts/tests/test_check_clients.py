"""scripts/check_clients.py, as far as it is pure, and the scripted API there."""

import json

import httpx2

import check_clients
from cc_loopback import LoopbackServer
from check_clients import ANSWER, CLIENTS, CLIENTS_FOLDER, COLUMNS, PAGE, PARIS, Client, judge, read, table

GOOD = {
    "text": ANSWER,
    "stream": ["Good day", " to you."],
    "tools": "It is sunny in Paris.",
    "structured": PARIS,
    "images": check_clients.PICTURE,
    "errors": [f"BadRequest: {check_clients.REFUSAL}", "The token is wrong", ANSWER],
}
BAD: dict[str, object] = {
    "text": "",
    "stream": [ANSWER],
    "tools": "It is.",
    "structured": {},
    "images": ANSWER,
    "errors": ["Timeout", "token", ANSWER],
}


def lines(**results: object) -> str:
    return "\n".join(json.dumps({"ability": name, "value": value}) for name, value in results.items())


def test_only_the_expected_result_of_an_ability_is_good() -> None:
    assert [judge(name, GOOD[name]) for name in COLUMNS] == [None] * len(COLUMNS)
    assert all(judge(name, BAD[name]) for name in COLUMNS)


def test_a_missing_result_is_a_problem_unless_the_client_lacks_the_ability() -> None:
    client = Client("A", "a.py", ("a",), "it has none", lacks=("tools",))
    row = read(client, f"noise\n{lines(versions={'a': '1'}, text=ANSWER, images='')}")
    assert {*row.problems} == {"stream", "structured", "images", "errors"}
    assert row.cells() == ["A", "a 1", "yes", "no", "—", "no", "no", "no"]
    assert "- A: it has none." in table([row])


def test_the_page_has_a_row_for_each_client() -> None:
    """MSG-97"""
    written = PAGE.read_text("utf-8")
    assert [client.title for client in CLIENTS if f"| {client.title} |" not in written] == []
    assert "| no |" not in written
    assert [client.program for client in CLIENTS if not (CLIENTS_FOLDER / client.program).is_file()] == []


def test_the_scripted_api_refuses_the_next_request_when_asked() -> None:
    with LoopbackServer() as api, httpx2.Client(base_url=api.url) as http:
        check_clients.script(api)

        def ask(prompt: str) -> int:
            body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": prompt}]}
            return http.post("/v1/messages", json=body, headers={"x-api-key": "any"}).status_code

        assert [ask("Refuse the next request with 529."), ask("Hello."), ask("Hello.")] == [200, 529, 200]
