"""Options: where each comes from, what it may be, and what a person is told about a wrong one."""

import argparse
import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from app.commands import ask, bench
from app.settings import MAX_SEED, MAX_TEMPERATURE, OPTION, OPTIONS, Settings, SettingsError, add_options, readme_rows


def from_line(*arguments, environ=None, names=()):
    parser = argparse.ArgumentParser()
    add_options(parser, *names)
    return Settings.from_args(parser.parse_args(arguments), environ or {})


GOOD = [
    ("model", "some/folder", "some/folder"), ("device", "cpu", "cpu"), ("dtype", "bfloat16", "bfloat16"),
    ("threads", "2", 2), ("host", "::1", "::1"), ("port", "65535", 65535), ("data", "data", Path("data")),
    ("context", "8192", 8192), ("rows", "1", 1), ("cache_memory", "2GiB", 2**31),
    ("cache_memory", "1.5 MB", 1_500_000), ("cache_memory", "4096", 4096), ("prefix", "/chat/", "/chat"), ("prefix", "/", ""), ("prefix", "/a/b", "/a/b"),
    ("system", "Be brief.", "Be brief."), ("temperature", "0", 0.0), ("temperature", "1e-4", 1e-4), ("temperature", "2", 2.0),
    ("top_k", "0", 0), ("top_k", "49153", 49153), ("max_tokens", "1", 1), ("seed", "0", 0), ("seed", str(MAX_SEED), MAX_SEED),
]
WRONG = [
    ("model", " "), ("device", "gpu"), ("device", "CPU"), ("dtype", "int8"), ("threads", "0"), ("threads", "two"), ("host", "a b"),
    ("host", "http://x/"), ("port", "0"), ("port", "65536"), ("port", "80.5"), ("port", "-1"), ("port", "٨٠"),
    ("data", str(Path(__file__))), ("data", str(Path(__file__) / "inside")), ("context", "15"), ("rows", "0"), ("cache_memory", "much"), ("cache_memory", "0"),
    ("cache_memory", "-1GB"), ("cache_memory", "2 GiBs"), ("cache_memory", "9" * 30), ("prefix", "chat"),
    ("prefix", "/a b"), ("prefix", "/a//b"), ("system", "x" * 20_001), ("temperature", "-1"), ("temperature", "nan"),
    ("temperature", "inf"), ("temperature", "hot"), ("temperature", "101"), ("top_k", "-1"), ("top_k", "2.5"), ("max_tokens", "0"),
    ("max_tokens", "-1"), ("max_tokens", "1000000000"), ("seed", "-1"), ("seed", str(2**64)), ("seed", "1" * 5000),
]


@pytest.mark.parametrize("name, text, value", GOOD)
def test_a_good_value_is_taken_from_the_command_line(name, text, value):
    assert getattr(from_line(f"{OPTION[name].flag}={text}"), name) == value


@pytest.mark.parametrize("name, text", WRONG)
def test_a_wrong_value_is_refused_in_one_line_that_names_option_value_and_what_is_allowed(name, text):
    with pytest.raises(SettingsError) as error:
        from_line(f"{OPTION[name].flag}={text}")
    sentence = str(error.value)
    assert sentence.startswith(f'{OPTION[name].flag} is "{text[:80]}')
    assert sentence.endswith(f"allowed: {OPTION[name].kind.allowed}")
    assert "\n" not in sentence and len(sentence) < 250


@pytest.mark.parametrize("name, text", [(name, text) for name, text in WRONG if OPTION[name].environment])
def test_a_wrong_variable_is_refused_by_its_own_name_and_the_flags(name, text):
    with pytest.raises(SettingsError, match=rf"^{OPTION[name].environment} \({OPTION[name].flag}\) is "):
        Settings.from_env({OPTION[name].environment: text})


@pytest.mark.parametrize("name, text, value", [case for case in GOOD if OPTION[case[0]].environment])
def test_a_good_value_is_taken_from_the_environment(name, text, value):
    assert getattr(Settings.from_env({OPTION[name].environment: text}), name) == value


def test_what_is_not_given_has_the_default_of_the_contract():
    settings = Settings.from_env({})
    assert settings == from_line() == Settings()
    assert (settings.host, settings.port, settings.context, settings.rows, settings.max_tokens) == ("127.0.0.1", 8000, 2048, 8, 512)
    assert (settings.model, settings.device, settings.dtype, settings.prefix) == ("default", "auto", "auto", "")
    assert settings.temperature is settings.top_k is settings.seed is settings.threads is settings.system is None
    assert settings.data.name == "glasschat"


def test_an_empty_variable_counts_as_not_set():
    assert Settings.from_env({each.environment: "" for each in OPTIONS if each.environment}) == Settings()


def test_the_command_line_goes_before_the_environment():
    assert from_line("--port", "9001", environ={"PORT": "9002"}).port == 9001
    assert from_line("--port", "9001", environ={"PORT": "not read"}).port == 9001
    assert from_line(environ={"PORT": "9002"}).port == 9002


def test_a_command_is_not_troubled_by_a_wrong_variable_of_an_option_that_it_does_not_have():
    assert from_line("--model", "m", environ={"PORT": "wrong"}, names=("model",)).model == "m"


def test_a_line_break_in_a_wrong_value_does_not_break_the_line():
    with pytest.raises(SettingsError) as error:
        from_line("--device", "tpu\nv5")
    assert "\n" not in str(error.value) and "tpu" in str(error.value)


def test_settings_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Settings().port = 1


def test_every_field_is_an_option_and_flags_and_variables_are_told_apart():
    assert [each.name for each in OPTIONS] == [each.name for each in fields(Settings)]
    assert len({each.flag for each in OPTIONS}) == len(OPTIONS)
    variables = [each.environment for each in OPTIONS if each.environment]
    assert len(set(variables)) == len(variables)


def test_ranges_are_those_of_the_sampler():
    from app.engine import sampling
    assert (MAX_TEMPERATURE, MAX_SEED) == (sampling.MAX_TEMPERATURE, sampling.MAX_SEED)


def test_the_readme_lists_every_option_as_the_table_has_it():
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8").splitlines()
    missing = [row for row in readme_rows() if row not in readme]
    assert not missing, "README.md lacks these lines:\n" + "\n".join(missing)
    start = readme.index(readme_rows()[0])
    assert readme[start:start + len(readme_rows())] == readme_rows(), "README.md has other lines between those of the table"


def test_the_readme_names_the_options_that_ask_and_bench_take():
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    sentence = re.search(r"`ask` takes (.+?); `bench` takes the first five of these", readme, re.DOTALL)
    named = re.findall(r"--[a-z-]+", sentence[1])
    for command, flags in ((ask, named), (bench, named[:5])):
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        offered = {flag for action in parser._actions for flag in action.option_strings}
        assert offered & {each.flag for each in OPTIONS} == set(flags)


def test_a_system_prompt_with_bytes_that_are_no_text_is_read_with_signs_for_them():
    assert Settings.from_env({"CHAT_SYSTEM": "be \udcff brief"}).system == "be \ufffd brief"
