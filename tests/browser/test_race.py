"""The race: measured, shown at its speed, and told at the end; over the real server, in the real browser."""

import csv
import io

import pytest
from playwright.sync_api import expect

from app.engine.messages import Part, Reason, Token
from app.engine.race_messages import Lane, RaceFinished
from tests.browser.conftest import PHONE
from tests.browser.race_page import STORY
from tests.browser.test_access import assert_accessible
from tests.scripted import ScriptedModel


def test_a_race_ends_with_how_many_times_faster_and_whether_both_are_the_same(open_race):
    race = open_race()
    times = race.run_to_the_end("Tell me a story", 60)
    assert times > 0
    expect(race.speedup).to_contain_text("×")
    expect(race.same).to_have_attribute("data-value", "true")
    expect(race.same).to_contain_text("token for token")
    assert race.said("cached") == race.said("uncached") == (STORY * 3)[:60]
    assert race.figure("cached", "tokens").startswith("60 tokens")
    prompt = int(race.figure("cached", "positions").split()[0]) - 59
    assert race.figure("uncached", "positions").startswith(f"{60 * prompt + 60 * 59 // 2:,}")
    expect(race.narrator).to_contain_text("each alone, with numbers of the kind float32")


def test_the_show_runs_both_lanes_at_their_measured_speed(serve, open_race):
    server = serve(ScriptedModel(STORY))
    measured_in(server, cached_s=0.05, uncached_s=40)  # long enough to be met in it
    race = open_race(server=server, reduced_motion="no-preference")
    race.run("Tell me a story")
    race.wait_for_state("showing")
    expect(race.narrator).to_contain_text("at the speed that it was measured at")
    expect(race.cached).to_have_attribute("data-state", "done")
    expect(race.uncached).to_have_attribute("data-state", "running")
    assert race.speedup.get_attribute("data-value") == ""
    lines = race.page.locator(".chart__lane")
    drawn = [len(line.get_attribute("points").split()) for line in lines.all()]
    assert drawn[0] < drawn[1] == 10, "each line is as long as its lane has come"
    race.skip.click()
    assert race.wait_for_end() == pytest.approx(800)
    assert race.said("uncached") == "abcdefghij" and race.figure("uncached", "time") == "400.0 s"
    race.replay.click()
    race.wait_for_state("showing")
    expect(race.skip).to_be_visible()


def measured_in(server, cached_s: float, uncached_s: float, others="abcdefghij", **fields) -> None:
    """The engine's next race ends at once, with what it measured given here."""
    def race(request, sink):
        lanes = [lane_of(text, seconds) for text, seconds in (("abcdefghij", cached_s), (others, uncached_s))]
        given = {"dtype": "float32", "running_dtype": "float32"} | fields
        sink(RaceFinished(request.race, "done", *lanes, pace=None, **given))

    server.parts.worker.race = race


def lane_of(text: str, seconds: float) -> Lane:
    tokens = tuple(Token(ord(letter), 50 + n, False, Part.TEXT) for n, letter in enumerate(text))
    return Lane(tokens, (seconds,) * len(text), tuple(range(50, 50 + len(text))), 0, Reason.LENGTH)


def test_where_the_answers_part_it_is_shown_and_explained(serve, open_race):
    server = serve(ScriptedModel(STORY))
    measured_in(server, 0.01, 0.02, others="abcdeXYZij", dtype="bfloat16", running_dtype="bfloat16",
                needed_bytes=2_000_000_000, free_bytes=700_000_000)
    race = open_race(server=server)
    race.run_to_the_end("Tell me a story")
    expect(race.same).to_have_attribute("data-value", "false")
    expect(race.same).to_contain_text("From token 6 on the answers differ: rounding, not memory.")
    expect(race.uncached.locator("mark")).to_have_text("XYZij")
    expect(race.cached.locator("mark")).to_have_text("fghij")
    expect(race.narrator).to_contain_text("for float32, numbers of 32 bits, there is too little memory, 2.00 GB of 700 MB")


@pytest.mark.parametrize("name", ["short", "long", "very-long"])
def test_a_ready_question_fills_the_box_and_can_be_raced(open_race, name):
    race = open_race()
    preset = race.page.locator(f"[data-preset={name}]")
    preset.click()
    expect(preset).to_have_attribute("aria-pressed", "true")
    assert race.prompt.input_value() and race.length.input_value() == preset.get_attribute("data-tokens")
    race.start.click()
    assert race.wait_for_end() > 0


def test_drawing_by_chance_takes_the_seed(open_race):
    race = open_race()
    expect(race.seed).to_be_disabled()
    race.choice.select_option(index=1)
    race.seed.fill("7")
    race.run_to_the_end("Hello", 10)
    expect(race.same).to_have_attribute("data-value", "true")


def test_the_picture_and_the_numbers_can_be_taken_along(open_race):
    race = open_race("=1+1 once, \"twice\"")
    race.run_to_the_end("Hello", 12)
    with race.page.expect_download() as started:
        race.png.click()
    picture = started.value.path().read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n" and (picture[16:20], picture[20:24]) == (
        (1920).to_bytes(4), (1080).to_bytes(4))
    with race.page.expect_download() as started:
        race.csv.click()
    rows = list(csv.DictReader(io.StringIO(started.value.path().read_text(encoding="utf-8-sig"))))
    assert len(rows) == 12 and rows[0]["remembers_text"] == "'=" and float(rows[5]["again_ms"]) > 0
    assert "".join(row["again_text"] for row in rows).replace("'", "") == "=1+1 once, \""
    assert int(rows[11]["remembers_positions"]) == int(rows[0]["tokens_before"]) + 11


def test_the_chart_has_a_table(open_race):
    race = open_race()
    race.run_to_the_end("Hello", 15)
    race.table.locator("summary").click()
    rows = race.table.locator("tbody tr")
    expect(rows).to_have_count(15)
    expect(rows.nth(14).locator("th")).to_have_text("15")
    assert "Milliseconds for each token" in race.chart.get_attribute("aria-label")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [{}, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_on_the_race_page(serve, open_race, scheme, screen):
    model = ScriptedModel(STORY * 3)
    race = open_race(model, color_scheme=scheme, **screen)
    expect(race.narrator).to_contain_text("to compute")
    assert_accessible(race)
    model.hold(after_tokens=5)
    race.run("Hello", 90)
    expect(race.narrator).to_contain_text("Measuring")
    assert_accessible(race)
    model.let_go()
    race.wait_for_end()
    race.table.locator("summary").click()
    assert_accessible(race)


@pytest.mark.parametrize("width", [360, 768, 1024, 1920, 2560])
def test_no_width_makes_the_race_page_scroll_sideways(open_race, width):
    race = open_race("unbreakable" * 20, viewport={"width": width, "height": 900})
    race.run_to_the_end("unbreakable" * 10, 100)
    race.table.locator("summary").click()
    assert race.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_race_is_run_by_keyboard_alone(open_race):
    race = open_race()
    race.prompt.focus()
    race.page.keyboard.type("")
    race.page.keyboard.press("Enter")
    race.wait_for_end()
    reached = set()
    for _ in range(25):
        race.page.keyboard.press("Tab")
        reached.add(race.page.evaluate("document.activeElement.dataset.testid"))
    assert {"race-start", "race-preset", "race-length", "race-choice", "race-replay", "race-png", "race-csv"} <= reached


def test_the_pages_lead_to_each_other(serve, visit):
    chat = visit(serve())
    for name, title in [("Race", "With and without"), ("Chat", "New chat")]:
        chat.pages.get_by_role("link", name=name, exact=True).click()
        expect(chat.page.get_by_role("heading", level=1)).to_contain_text(title)
        expect(chat.pages.locator("[aria-current=page]")).to_have_text(name)
