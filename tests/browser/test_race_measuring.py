"""A race while it is measured, and what can come between: told as it goes, and stopped, waited for or come back to."""

from playwright.sync_api import expect

from tests.browser.race_page import STORY, RacePage
from tests.scripted import ScriptedModel

CHART_MEASURING = ("Each token is being timed. The lines are drawn when both lanes are measured: only then is it known "
                   "how high they go.")


def held_at_five_tokens(open_race):
    """(the model, a race whose first lane waits after five of twenty tokens)."""
    model = ScriptedModel(STORY)
    model.hold(after_tokens=5)
    race = open_race(model)
    race.run("Hello", 20)
    return model, race


def test_a_race_that_was_disturbed_says_so(serve, open_race, monkeypatch):
    monkeypatch.setattr("app.engine.race.PATIENCE_S", 0.0)
    server = serve(ScriptedModel(lambda question: "word " * (2000 if question == "Chat" else 4),
                                 seconds_per_token=0.03))
    race = open_race(server=server)
    chatter = RacePage(race).page.context.new_page()
    chatter.goto(server.url)
    chatter.get_by_test_id("composer").fill("Chat")
    chatter.get_by_test_id("send").click()
    expect(chatter.get_by_test_id("message")).to_have_count(2)
    race.run_to_the_end("Race", 12)
    expect(race.narrator).to_contain_text("were measured between their steps")


def test_the_length_of_measuring_is_told_before(serve, open_race):
    server = serve(ScriptedModel(STORY))
    race = open_race(server=server)
    race.prompt.fill("Hello")
    expect(race.narrator).to_contain_text("to compute with the cache")
    race.run_to_the_end("Hello", 20)  # now it is known how fast it goes
    race.prompt.fill("Hello, you")
    expect(race.narrator).to_contain_text("to measure")
    expect(open_race(server=server).narrator).to_contain_text("to measure")


def test_while_it_is_measured_it_tells_so_and_can_be_stopped(serve, open_race):
    model, race = held_at_five_tokens(open_race)
    expect(race.narrator).to_contain_text("Measuring the lane that remembers, alone. 5 of 20 tokens")
    expect(race.progress).to_be_visible()
    expect(race.start).to_be_hidden()
    race.stop_while_held()
    expect(race.narrator).to_contain_text("Stopping…")
    model.let_go()
    expect(race.narrator).to_contain_text("Stopped.")
    expect(race.start).to_be_visible()
    assert race.run_to_the_end("Hello", 20) > 0


class HeldAtTwoTokens(ScriptedModel):
    """Waits before the third token of the lane that reads again."""

    def forward(self, ids, kv_cache=None):
        if kv_cache is None and ids[0, -2:].tolist() == list(b"On"):
            self._go_on.wait(300)
        return super().forward(ids, kv_cache)


def test_while_it_is_measured_each_lane_shows_what_it_has_by_then(open_race):
    race = open_race(HeldAtTwoTokens(STORY))
    race.run("Hello", 20)
    expect(race.uncached).to_have_attribute("data-state", "measuring")
    expect(race.uncached).to_contain_text("Being measured: 2 of 20 tokens")
    assert race.said("uncached") == "On"
    expect(race.cached).to_have_attribute("data-state", "measured")
    expect(race.cached).to_contain_text("Measured: 20 tokens")
    assert race.said("cached") == STORY[:20]
    assert race.figure("cached", "time").endswith(" s")
    shown = race.figure("cached", "positions")
    race.page.reload()  # who comes in the middle sees the same
    expect(race.uncached).to_contain_text("Being measured: 2 of 20 tokens")
    assert race.said("cached") == STORY[:20] and race.figure("cached", "positions") == shown
    expect(race.chart).to_have_attribute("aria-label", CHART_MEASURING)
    expect(race.page.get_by_text(CHART_MEASURING)).to_be_visible()
    race.server.model.let_go()
    race.wait_for_end()
    assert race.said("uncached") == STORY[:20]
    expect(race.page.get_by_text(CHART_MEASURING)).to_be_hidden()


def test_a_lane_that_has_to_wait_says_so(open_race):
    model, race = held_at_five_tokens(open_race)
    expect(race.cached).to_contain_text("Being measured: 5 of 20 tokens")
    assert race.said("cached") == STORY[:5]
    expect(race.uncached).to_have_attribute("data-state", "waiting")
    expect(race.uncached).to_contain_text("Waits: each lane is measured alone")
    expect(race.uncached).to_contain_text("It keeps nothing.")
    model.let_go()
    race.wait_for_end()


def test_others_are_told_that_a_race_is_being_measured(serve, open_race):
    model = ScriptedModel(STORY)
    model.hold(after_tokens=5)
    server = serve(model)
    race, other = open_race(server=server), open_race(server=server)
    race.run("Hello", 20)
    expect(race.narrator).to_contain_text("Measuring")
    other.run("Hello", 20)
    other.wait_for_state("refused")
    expect(other.narrator).to_contain_text("Another race is being measured")
    model.let_go()
    race.wait_for_end()
    assert other.run_to_the_end("Hello", 20) > 0


def test_a_broken_line_breaks_no_race(serve, open_race):
    model, race = held_at_five_tokens(open_race)
    expect(race.narrator).to_contain_text("Measuring")
    race.page.context.set_offline(True)
    expect(race.narrator).to_contain_text("Reconnecting…")
    race.page.context.set_offline(False)
    expect(race.narrator).to_contain_text("Measuring")
    model.let_go()
    assert race.wait_for_end() > 0


def test_what_was_measured_outlives_a_reload(open_race):
    race = open_race()
    times = race.run_to_the_end("Hello", 20)
    race.page.reload()
    assert race.wait_for_end() == times
    assert race.said("cached") == STORY[:20]


def test_a_restarted_server_no_longer_has_the_race_and_the_page_says_so(serve, open_race):
    model, race = held_at_five_tokens(open_race)
    expect(race.narrator).to_contain_text("Measuring")
    race.page.context.set_offline(True)  # or it may hear yet that the race was stopped
    expect(race.narrator).to_contain_text("Reconnecting")
    race.server.restart()
    race.page.context.set_offline(False)
    expect(race.narrator).to_contain_text("no longer has it")
    assert race.run_to_the_end("Hello", 20) > 0


def test_too_long_a_question_is_refused_with_a_sentence(open_race):
    race = open_race()
    race.run("x" * 3000, 20)
    race.wait_for_state("refused")
    expect(race.narrator).to_contain_text("more than the 2,048 that the model can hold")


def test_an_empty_question_starts_nothing(open_race):
    race = open_race()
    race.run("  ")
    expect(race.narrator).to_contain_text("Type a question")
    expect(race.start).to_be_visible()
