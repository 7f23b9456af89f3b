import pytest

from app.chat.errors import ChatError
from app.chat.texts import check_text


@pytest.mark.parametrize("text", [" \n\t", "\u200b\u200d\ufeff", "\u2800 \u3164", "\u00a0\u202e\ufe0f", "\x00\x1b"])
def test_a_text_of_which_nothing_can_be_seen_is_empty(text):
    with pytest.raises(ChatError) as raised:
        check_text(text)
    assert raised.value.code == "empty"


@pytest.mark.parametrize("text", ["a\u200b", ".", "\U0001f469\u200d\U0001f52c", "\ufffd", "\u0301a"])
def test_a_text_with_one_visible_character_is_kept_as_it_is(text):
    assert check_text(text) == text
