"""Ids to text as they come (T01, T02, BC-20)."""

import pytest
from hypothesis import given, strategies as st

from app.chat.detokenizer import REPLACEMENT, Detokenizer, token_text
from tests.scripted import ByteTokenizer, PlainByteTokenizer

TOKENIZERS = [ByteTokenizer(), PlainByteTokenizer()]
both = pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["bytes", "text only"])


def feed_all(tokenizer, pieces):
    detokenizer = Detokenizer(tokenizer)
    return [detokenizer.feed(piece) for piece in pieces] + [detokenizer.flush()]


@both
def test_an_emoji_of_four_tokens_comes_at_the_last_of_them(tokenizer):
    assert feed_all(tokenizer, [[id] for id in "😀!".encode()]) == ["", "", "", "😀", "!", ""]


@both
def test_a_chinese_character_of_two_and_one_bytes_comes_whole(tokenizer):
    first, second, third = "字".encode()
    assert feed_all(tokenizer, [[first, second], [third]]) == ["", "字", ""]


@both
def test_half_a_character_at_the_end_is_one_replacement_character(tokenizer):
    assert feed_all(tokenizer, [list(b"ab"), list("😀".encode()[:2])]) == ["ab", "", REPLACEMENT]


@both
def test_a_lone_byte_does_not_hold_back_what_follows(tokenizer):
    assert (
        "".join(feed_all(tokenizer, [[0xFF], list(b"a"), [0xFF, 0xFF], list(b"b")])[:-1])
        == f"{REPLACEMENT}a{REPLACEMENT * 2}b"
    )


@both
def test_a_replacement_character_that_the_model_wrote_is_text(tokenizer):
    assert "".join(feed_all(tokenizer, [[id] for id in f"a{REPLACEMENT}b".encode()])) == f"a{REPLACEMENT}b"


@both
@given(data=st.data())
def test_the_pieces_put_together_are_what_decode_makes_of_all_ids(tokenizer, data):
    text = data.draw(st.one_of(st.binary(max_size=60), st.text(max_size=30).map(str.encode)))
    ids = list(text)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(ids)), max_size=10)))
    pieces = [ids[a:b] for a, b in zip([0, *cuts], [*cuts, len(ids)])]
    assert "".join(feed_all(tokenizer, pieces)) == tokenizer.decode(ids)


@both
def test_valid_text_is_never_shown_with_a_replacement_character_on_the_way(tokenizer):
    text = "Größe 字体 👩‍👩‍👧 ñ"
    assert all(REPLACEMENT not in piece for piece in feed_all(tokenizer, [[id] for id in text.encode()]))


def test_long_rubbish_is_decoded_in_windows_of_bounded_size():
    class Counting(PlainByteTokenizer):
        decoded = 0

        def decode(self, ids):
            Counting.decoded += len(ids)
            return super().decode(ids)

    tokenizer = Counting()
    ids = [0xFF] * 2000
    assert "".join(feed_all(tokenizer, [[id] for id in ids])) == REPLACEMENT * 2000
    assert Counting.decoded < 2000 * 150


def test_a_tokenizer_that_drops_a_leading_space_keeps_those_between_words():
    class Words(PlainByteTokenizer):
        words = [" one", " two", " three"]

        def decode(self, ids):
            return "".join(self.words[id] for id in ids).removeprefix(" ")

    assert "".join(feed_all(Words(), [[0], [1], [2]])) == "one two three"


def test_a_piece_of_a_character_is_spelled_as_bytes():
    assert token_text(ByteTokenizer(), 0xF0) == "\\xf0"
    assert token_text(ByteTokenizer(), ord("a")) == "a"
    assert token_text(PlainByteTokenizer(), 0xF0) == "‹240›"
