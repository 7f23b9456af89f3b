"""A chat that is saved as a file, and played again."""

CALC = "Sum: <|python_start|>12*3<|python_end|> is **36**.\n\nA second block."


def options_of(chat):
    chat.page.locator(".chat-item").first.hover()
    chat.chat_options.first.click()


def saved(chat, tmp_path):
    options_of(chat)
    with chat.page.expect_download() as download:
        chat.export.click()
    path = tmp_path / "chat.json"
    download.value.save_as(path)
    assert download.value.suggested_filename.endswith(".glasschat.json")
    return path


def words_of(chat, answer):
    """Its text, wherever its lines are broken."""
    return chat.text_of(answer).split()
