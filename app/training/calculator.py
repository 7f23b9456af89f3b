"""Teaches the default model the calculator: `python -m app.training.calculator`, about an hour and a half on two cores.

    1. the published model answers ordinary prompts; these answers, and how likely each token was, hold it in place
    2. an adapter is trained on generated questions with their calculator blocks, and on those answers
    3. it is written with its recipe, and tried on questions that were not among those

Stopped, it goes on where it was when it is started again. The figures in the README are of another set, which was
written apart from the generator: `python -m tests.bench.calculator`.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import torch
from platformdirs import user_cache_dir
from safetensors.torch import save_file

from app.models import default
from app.models.adapter import ADAPTERS
from app.models.gguf import GGUFModel
from app.models.registry import load_model
from app.training.batches import Batches, own_sequences
from app.training.counts import words_of
from app.training.loop import Recipe, train
from app.training.ordinary import ordinary_prompts
from app.training.own_answers import own_answers
from app.training.published import published_states
from app.training.trainable import TrainableLlama

NAME = "calculator"
MARKS = ("<|python_start|>", "<|python_end|>", "<|output_start|>", "<|output_end|>")
TEMPERATURES = (0.0, 0.0, 0.7)  # of the model's own answers: two in three are its greedy ones


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m app.training.calculator", description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path(user_cache_dir("glasschat")) / "training",
                        help="folder of what is needed to go on after a stop (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=ADAPTERS, help="folder of the adapter (default: the repository's)")
    for name, about in (("steps", "steps of training"), ("seed", "another seed, other data"),
                        ("processes", "processes to train with; another number changes the figures a little")):
        parser.add_argument(f"--{name}", type=int, default=getattr(Recipe(), name), help=f"{about} (default: %(default)s)")
    options = parser.parse_args(arguments)
    recipe = replace(Recipe(), steps=options.steps, seed=options.seed, processes=options.processes)
    options.work.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    file = default.fetch(progress=True)
    answers = options.work / f"own-answers-{recipe.own_answers}-{recipe.seed}.jsonl"
    own = own_answers(ordinary_conversations(recipe), answers, _published, TEMPERATURES)
    states = options.work / f"published-{recipe.own_answers}-{recipe.seed}.pt"
    published_states(own_sequences(_tokenizer(file), own, recipe.seed), states, partial(make_model, file, recipe))
    learned = train(recipe, options.work, partial(make_model, file), partial(make_batches, file, own, states))
    write_adapter(learned, recipe, file, options.out)
    print(f"written: {options.out / NAME}.safetensors", file=sys.stderr)
    return 0


def _published():
    return load_model("default", dtype="auto", context=256)


def ordinary_conversations(recipe: Recipe) -> list[dict]:
    conversations = []
    for prompt in ordinary_prompts(recipe.own_answers, recipe.seed):
        system = [{"role": "system", "content": prompt["system"]}] if "system" in prompt else []
        conversations.append({"messages": [*system, {"role": "user", "content": prompt["question"]}]})
    return conversations


def make_model(file: Path, recipe: Recipe) -> TrainableLlama:
    opened = GGUFModel(file)
    return TrainableLlama(opened.config, opened.weight, _mark_ids(file), recipe.rank, recipe.scale, recipe.seed)


def make_batches(file: Path, own: list[dict], states: Path, recipe: Recipe) -> Batches:
    tokenizer = _tokenizer(file)
    sequences = own_sequences(tokenizer, own, recipe.seed)
    held = list(zip(sequences, published_states(sequences, states, partial(make_model, file, recipe)), strict=True))
    return Batches(tokenizer, words_of(tokenizer), own, held, recipe.seed, recipe.sums_a_step, recipe.ordinary_a_step,
                   recipe.processes)


def _tokenizer(file: Path):
    return GGUFModel(file).tokenizer(default.MODEL_NAME)


def _mark_ids(file: Path) -> list[int]:
    tokenizer = _tokenizer(file)
    return [tokenizer.encode_special(mark) for mark in MARKS]


def write_adapter(learned: dict[str, torch.Tensor], recipe: Recipe, file: Path, folder: Path) -> None:
    """The adapter as app/models/adapter.py reads it, in 16 bit, and its recipe beside it."""
    facts = {"scale": recipe.scale, "token_ids": _mark_ids(file)}
    save_file({name: tensor.half().contiguous() for name, tensor in learned.items()}, folder / f"{NAME}.safetensors",
              metadata={"adapter": json.dumps(facts)})
    about = {
        "model": {"name": default.MODEL_NAME, "file": default.SMOLLM2.gguf_name, "sha256": default.SMOLLM2.gguf_sha256},
        "recipe": asdict(recipe),
        "command": "python -m app.training.calculator",
        "data": "generated by app/training: sums, word problems and counts; the published model's own answers to ordinary prompts",
        "loss": "cross entropy where the assistant writes, and the divergence from the published model, and tool marks, on its own answers",
        "versions": {"python": platform.python_version()} | {name: version(name) for name in ("torch", "safetensors")},
        "licence": "MIT, as this repository; the model it belongs to is under Apache-2.0",
    }
    (folder / f"{NAME}.json").write_text(json.dumps(about, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
