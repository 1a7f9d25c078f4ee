"""Example texts and numbers, by a property name or format."""

import re

TEXT_BY_FORMAT = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "ada@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uri-reference": "/index.html",
    "uuid": "5f0c1c3e-7b1d-4c57-9a55-0c8f6f3f2b1a",
    "binary": "ZXhhbXBsZQ==",
    "byte": "ZXhhbXBsZQ==",
    "json-pointer": "/example",
    "regex": "^a+$",
}

_BY_NAME: dict[str, str | int | float] = {
    "address": "1 Example Street",
    "age": 36,
    "amount": 10,
    "author": "Ada Lovelace",
    "city": "Paris",
    "code": "print('hello')",
    "color": "blue",
    "command": "echo hello",
    "country": "France",
    "currency": "EUR",
    "date": "2026-01-31",
    "day": 31,
    "description": "A short description.",
    "email": "ada@example.com",
    "expression": "6 * 7",
    "file": "example.txt",
    "filename": "example.txt",
    "hour": 12,
    "language": "English",
    "latitude": 48.85,
    "limit": 10,
    "location": "Paris",
    "longitude": 2.35,
    "message": "Hello!",
    "minute": 30,
    "month": 1,
    "name": "Ada",
    "path": "example.txt",
    "phone": "+33 1 23 45 67 89",
    "price": 9.5,
    "query": "weather in Paris",
    "question": "What is the answer?",
    "subject": "Hello",
    "summary": "A short summary.",
    "surname": "Lovelace",
    "temperature": 21,
    "text": "Some text.",
    "time": "12:00",
    "timezone": "Europe/Paris",
    "title": "An Example",
    "topic": "history",
    "unit": "celsius",
    "url": "https://example.com/",
    "username": "ada",
    "year": 2026,
}


def word_for(name: str) -> str:
    """Return a text for a property: a word that suits the name, or else the name."""
    value = _entry(name)
    return value if isinstance(value, str) else name or "text"


def number_for(name: str) -> int | float:
    """Return a number for a property: a value that suits the name, or else 1."""
    value = _entry(name)
    return 1 if value is None or isinstance(value, str) else value


def _entry(name: str) -> str | int | float | None:
    """Return the entry for a name, or else for the last word: `userEmail` and `user_email` are e-mail addresses."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)
    for key in (name.lower(), words[-1].lower() if words else ""):
        if key in _BY_NAME:
            return _BY_NAME[key]
    return None
