"""`bench` with a model of no weight: what it measures, not how fast it is."""

import json

import pytest

from app.__main__ import main
from app.commands import loading
from tests.scripted import ByteTokenizer, ScriptedModel


@pytest.fixture
def bench(monkeypatch, capsys):
    """bench(model, *arguments) -> status, standard output, standard error."""

    def bench(model, *arguments):
        monkeypatch.setattr("app.commands.bench.load", lambda settings: (model, ByteTokenizer()))
        status = main(["bench", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return bench


def test_json_has_a_result_for_each_length(bench):
    status, out, err = bench(ScriptedModel(), "--json", "--lengths", "50,20,20", "--tokens", "4", "--rounds", "2")
    measured = json.loads(out)
    assert (status, err) == (0, "")
    assert [result["prompt_tokens"] for result in measured["results"]] == [20, 50]
    assert all(speed > 0 for result in measured["results"] for speed in result.values())
    assert set(measured["results"][0]) == {"prompt_tokens", "read_tokens_per_s", "read_tokens_per_s_without_cache",
                                           "write_tokens_per_s", "write_tokens_per_s_without_cache"}
    assert (measured["rounds"], measured["written_tokens"], measured["model"]) == (2, 4, "Scripted")


def test_with_the_cache_each_token_is_computed_once_and_without_it_everything_is(bench):
    model = ScriptedModel()
    bench(model, "--json", "--lengths", "40", "--tokens", "5", "--rounds", "1")
    a_round = {tokens: 40 + tokens + 40 + 41 + 42 for tokens in (2, 5)}  # read, written; read, and two written without
    assert model.tokens_computed == a_round[2] + a_round[5]  # the first is for warming up


def test_the_table_has_a_line_for_each_length(bench):
    status, out, _ = bench(ScriptedModel(), "--lengths", "1,20", "--tokens", "2", "--rounds", "1")
    lines = out.splitlines()
    assert status == 0 and lines[0].startswith("Scripted, float32, on cpu with ")
    assert [line.split("|")[0].strip() for line in lines[-2:]] == ["1", "20"]
    assert all(line.endswith("x") for line in lines[-2:])


def test_a_length_beyond_the_models_is_told_in_one_line(bench):
    status, out, err = bench(ScriptedModel(sequence_len=64), "--lengths", "20,60", "--tokens", "4")
    assert (status, out) == (2, "")
    assert err == 'glasschat: --lengths is "20,60"; allowed: at most 59 tokens with this model\n'


def test_a_batch_is_measured_row_by_row(bench):
    model = ScriptedModel()
    status, out, _ = bench(model, "--json", "--lengths", "10", "--batch", "4,1", "--tokens", "3", "--rounds", "1")
    results = json.loads(out)["results"]
    assert status == 0 and [(each["rows"], each["prompt_tokens"]) for each in results] == [(1, 10), (4, 10)]
    assert all(each["write_tokens_per_s"] == pytest.approx(each["rows"] * each["write_tokens_per_s_each"]) for each in results)
    assert model.tokens_computed == (10 + 4 * 2) + (10 + 1 * 3) + (10 + 4 * 3)
    _, out, _ = bench(ScriptedModel(), "--batch", "1,2", "--tokens", "2", "--rounds", "1")
    assert [line.split("|")[0].strip() for line in out.splitlines()[-2:]] == ["1", "2"]
    assert bench(ScriptedModel(), "--batch", "0")[0] == 2


def test_a_length_beyond_what_the_model_was_loaded_for_names_the_option_that_was_given(capsys, monkeypatch):
    def refuse(settings):
        loading.check_context(settings, ScriptedModel(sequence_len=64))

    monkeypatch.setattr("app.commands.bench.load", refuse)
    assert main(["bench", "--lengths", "100000", "--tokens", "4"]) == 2
    assert capsys.readouterr().err == 'glasschat: --lengths is "100000"; allowed: at most 59 tokens with this model\n'
