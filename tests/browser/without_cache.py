"""A chat that remembers one answer, in which the cache is then switched off."""

from playwright.sync_api import expect

from tests.scripted import ScriptedModel


def then_without_the_cache(serve, visit):
    """-> (the chat, how many tokens it remembers). Its next answer is "Second answer.", made without the cache."""
    chat = visit(serve(ScriptedModel("First.", "Second answer.")))
    chat.ask_and_wait("One")
    held = chat.number("cached-tokens")
    expect(chat.token).to_have_count(held)
    chat.use_cache.uncheck()
    return chat, held
