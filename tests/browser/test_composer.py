"""Long texts, refused texts and texts that wait."""

from playwright.sync_api import expect

from tests.scripted import ScriptedModel

PASTE = """(area, text) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    return area.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
}"""


def test_with_an_empty_box_the_button_says_what_it_waits_for(serve, visit):
    chat = visit(serve())
    expect(chat.send).to_have_attribute("title", "Write something first")
    chat.send.click()
    expect(chat.composer).to_be_focused()
    chat.composer.fill("Hello")
    expect(chat.send).to_have_attribute("title", "")
    chat.composer.fill(" ")
    expect(chat.send).to_have_attribute("title", "Write something first")


def test_a_paste_of_a_megabyte_is_told_to_be_too_long_with_both_counts(serve, visit):
    chat = visit(serve())
    chat.composer.fill("Before. ")
    goes_in = chat.composer.evaluate(PASTE, "x" * 1_000_000)
    assert not goes_in
    expect(chat.notice).to_contain_text("1,000,000 tokens, and a message may have 1,788")
    assert chat.composer.input_value() == "Before. "
    chat.ask_and_wait("Still here?")


def test_a_long_paste_that_fits_goes_in(serve, visit):
    chat = visit(serve(ScriptedModel("Read.", sequence_len=100_000), context=100_000))
    assert not chat.composer.evaluate(PASTE, "word " * 12_000)
    expect(chat.composer).to_have_value("word " * 12_000)
    expect(chat.count).to_contain_text("60,000 tokens")


def test_a_text_that_the_memory_cannot_hold_is_told_so_while_it_is_typed(serve, visit):
    chat = visit(serve(context=200))
    chat.composer.fill("x" * 500)
    expect(chat.notice).to_contain_text("500 tokens")
    expect(chat.send).to_be_disabled()
    chat.composer.fill("x" * 50)
    expect(chat.notice).to_be_hidden()
    expect(chat.send).to_be_enabled()
    expect(chat.count).to_have_text("50 tokens")
    chat.composer.fill("")
    expect(chat.count).to_have_text("Small models are often wrong.")


def test_the_count_says_what_the_next_reply_will_really_read(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("One")
    for text in ("And two?", "Three"):
        chat.composer.fill(text)
        expect(chat.count).to_contain_text("the next reply reads")
        said = int(chat.count.inner_text().split()[-1])
        chat.send.click()
        expect(chat.composer).to_have_value("")
        chat.wait_for_end()
        assert chat.number("read-tokens") == said
    chat.composer.fill("Four")
    expect(chat.count).to_contain_text("the next reply reads")
    chat.use_cache.uncheck()
    expect(chat.count).to_have_text("4 tokens")


def test_what_is_too_long_depends_on_the_persons_own_settings(serve, visit):
    chat = visit(serve(context=200))
    chat.composer.fill("x" * 173)
    expect(chat.notice).to_contain_text("173 tokens, and a message may have 171")
    chat.settings.click()
    chat.page.get_by_label("Longest answer").fill("10")
    chat.settings_save.click()
    expect(chat.notice).to_be_hidden()
    chat.settings.click()
    chat.page.get_by_label("System prompt").fill("Be brief, and kind to all.")
    chat.settings_save.click()
    expect(chat.notice).to_contain_text("173 tokens, and a message may have")


def test_a_text_over_the_limit_cannot_be_sent_until_it_is_shorter(serve, visit):
    chat = visit(serve())
    sent = chat.frames("send")  # reloads
    limit = chat.page.evaluate("JSON.parse(document.getElementById('page-data').textContent).limits.text_bytes")
    chat.composer.fill("é" * (limit // 2 + 1))
    expect(chat.notice).to_contain_text(f"{2 * (limit // 2 + 1):,}")
    expect(chat.send).to_be_disabled()
    chat.composer.press("Enter")
    chat.composer.fill("short")
    expect(chat.notice).to_be_hidden()
    chat.ask_and_wait("short")
    assert [frame["text"] for frame in sent] == ["short"]


def test_a_refused_question_stays_in_the_box_with_the_reason(serve, visit):
    chat = visit(serve(context=64))
    chat.page.route("**/api/count", lambda route: route.abort())  # that would tell beforehand, if it came before the click
    chat.composer.fill("far too long for this memory " * 20)
    chat.send.click()
    expect(chat.notice).to_contain_text("too long")
    assert chat.composer.input_value().startswith("far too long")
    assert chat.messages.count() == 0
    assert chat.ask_and_wait("short") != ""


def test_a_message_of_which_nothing_can_be_seen_is_not_sent(serve, visit):
    chat = visit(serve())
    sent = chat.frames("send")
    for blank in ("\u200b\u200d", " \u2800\n", "\u3164"):
        chat.composer.fill(blank)
        chat.composer.press("Enter")
    chat.ask_and_wait("seen")
    assert [frame["text"] for frame in sent] == ["seen"]
