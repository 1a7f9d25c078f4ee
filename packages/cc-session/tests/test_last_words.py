"""Last words: stderr lines that are not a log."""

from cc_session.process.cli_process import LastWords
from debug_log import ANSWERED, SENDING

LOCK = """\
2026-11-22T11:45:33.018Z [ERROR] Failed to save config with lock: Error: ENOENT: no such file or directory
    at lstat (unknown)"""


def words_of(*texts: str) -> LastWords:
    words = LastWords()
    for line in "\n".join(texts).split("\n"):
        words.take(line)
    return words


def test_lines_that_are_no_log_are_the_last_words() -> None:
    """SES-71."""
    cut_off = SENDING.partition("    body")[0].rstrip("\n")
    words = words_of("one", SENDING, "two", LOCK, cut_off, "no room: {", "  here", "}", ANSWERED)
    assert str(words) == "one\ntwo\nno room: {\n  here\n}"


def test_a_log_entry_that_is_cut_at_any_place_leaves_no_word() -> None:
    """SEC-06: the process was killed while it wrote."""
    for end in range(len("[Anthropic SDK DEBUG] "), len(SENDING)):
        assert str(words_of(ANSWERED, SENDING[:end])) == ""


def test_the_last_lines_count() -> None:
    words = words_of(*map(str, range(100)))
    assert str(words).split("\n") == [*map(str, range(60, 100))]
    words.forget()
    assert str(words) == ""
