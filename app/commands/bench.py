"""`python -m app bench`: how fast this machine reads a prompt and writes a reply, with the cache and without.

Both ways take the best token each time, so that they do the same work. Every figure is the median of some
rounds; the rounds go through all lengths in turn, so that a slow minute does not fall on one length alone.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from statistics import median

from app.commands import CommandError
from app.commands.loading import ContextTooLongError, load
from app.settings import Kind, Settings, SettingsError, add_options, whole_number

FILLER = "On the way home she told me a long story about the sea, a lighthouse and 24 geese. "
REFERENCE_TOKENS = 2  # written without the cache in each round: each costs a forward of everything before it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, "model", "adapter", "device", "dtype", "threads")
    parser.add_argument("--lengths", metavar="N,N,...", default="32,256,1000", help="prompt lengths in tokens (32,256,1000)")
    parser.add_argument("--tokens", metavar="N", default="32", help="tokens to write after each prompt (32)")
    parser.add_argument("--rounds", metavar="N", default="3", help="rounds to take the median of (3)")
    parser.add_argument("--batch", metavar="N,N,...", help="measure how many rows write at once instead, such as 1,2,4,8")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    lengths = _numbers(args.lengths, "--lengths", whole_number(1, 1_000_000))
    batches = _numbers(args.batch, "--batch", whole_number(1, 256)) if args.batch else []
    tokens = _whole(args.tokens, "--tokens", whole_number(2, 10_000))
    rounds = _whole(args.rounds, "--rounds", whole_number(1, 1000))
    settings = Settings.from_args(args)
    longest = max(lengths) + tokens + 1
    try:
        model, tokenizer = load(replace(settings, context=longest))
        bench = Bench(model, tokenizer)
        if longest > bench.runner.max_context:
            raise ContextTooLongError(longest, bench.runner.max_context)
    except ContextTooLongError as error:  # nobody gave a context: it comes of the lengths
        allowed = f"at most {error.largest - tokens - 1} tokens with this model"
        raise SettingsError("--lengths", args.lengths, allowed) from None
    results = bench.measure_batches(batches, min(lengths), tokens, rounds) if batches else bench.measure(lengths, tokens, rounds)
    about = bench.about()
    if args.json:
        print(json.dumps({**about, "rounds": rounds, "written_tokens": tokens, "results": [asdict(each) for each in results]}))
    else:
        print("\n".join((batch_table if batches else table)(about, results)))
    return 0


def _whole(text: str, flag: str, kind: Kind) -> int:
    try:
        return kind.read(text)
    except ValueError:
        raise SettingsError(flag, text, kind.allowed) from None


def _numbers(text: str, flag: str, kind: Kind) -> list[int]:
    try:
        return sorted({kind.read(each) for each in text.split(",")})
    except ValueError:
        raise SettingsError(flag, text, f"{kind.allowed}, or several with commas between them") from None


@dataclass(frozen=True)
class Result:
    """Speeds in tokens a second after a prompt of this length."""
    prompt_tokens: int
    read_tokens_per_s: float
    read_tokens_per_s_without_cache: float
    write_tokens_per_s: float
    write_tokens_per_s_without_cache: float

    @property
    def times_faster(self) -> float:
        return self.write_tokens_per_s / self.write_tokens_per_s_without_cache


@dataclass(frozen=True)
class BatchResult:
    """Speeds in tokens a second of so many rows that write at once, after prompts of this length."""
    rows: int
    prompt_tokens: int
    write_tokens_per_s: float
    write_tokens_per_s_each: float


class Bench:
    """Measures one model. The seconds of a part are those of all its forwards, choosing the tokens included."""

    def __init__(self, model, tokenizer):
        from app.engine.model_runner import ModelRunner

        self.model, self.tokenizer, self.runner = model, tokenizer, ModelRunner(model)

    def measure(self, lengths: list[int], tokens: int, rounds: int) -> list[Result]:
        self._round(self._prompt(min(lengths)), tokens=2)  # the first forwards of all are slow
        measured = {length: [] for length in lengths}
        for _ in range(rounds):
            for length in lengths:
                measured[length].append(self._round(self._prompt(length), tokens))
        return [Result(length, *(median(speeds) for speeds in zip(*measured[length]))) for length in lengths]

    def measure_batches(self, batches: list[int], length: int, tokens: int, rounds: int) -> list[BatchResult]:
        self._batch_round(max(batches), length, tokens=2)
        measured = {rows: [] for rows in batches}
        for _ in range(rounds):
            for rows in batches:
                measured[rows].append(self._batch_round(rows, length, tokens))
        return [BatchResult(rows, length, median(measured[rows]), median(measured[rows]) / rows) for rows in batches]

    def _batch_round(self, rows: int, length: int, tokens: int) -> float:
        import torch

        from app.engine.kv_cache import KVCache

        with torch.inference_mode():
            prompt = KVCache.for_model(self.model, 1, length)
            token = int(self.runner.read(self._prompt(length), prompt).argmax())
            cache = KVCache.for_model(self.model, rows, length + tokens)
            cache.prefill(prompt)
            ids, start = [[token]] * rows, time.perf_counter()
            for _ in range(tokens):
                ids = self.runner.forward(ids, cache).argmax(dim=-1, keepdim=True).tolist()
            return rows * tokens / (time.perf_counter() - start)

    def _prompt(self, length: int) -> list[int]:
        once = self.tokenizer.encode(FILLER)
        if not once:
            raise CommandError("this model's tokenizer makes no tokens of an ordinary sentence")
        return ([self.tokenizer.get_bos_token_id()] + once * (length // len(once) + 1))[:length]

    def _round(self, prompt: list[int], tokens: int) -> tuple[float, float, float, float]:
        import torch

        from app.engine.kv_cache import KVCache

        with torch.inference_mode():
            row = KVCache.for_model(self.model, 1, len(prompt) + tokens)
            seconds, token = self._timed(lambda: self.runner.read(prompt, row))
            read = len(prompt) / seconds
            total_s = 0.0
            for _ in range(tokens):
                seconds, token = self._timed(lambda: self.runner.forward([[token]], row))
                total_s += seconds
            write, ids = tokens / total_s, list(prompt)
            seconds, token = self._timed(lambda: self.runner.forward([ids]))
            read_without, total_s = len(prompt) / seconds, 0.0
            for _ in range(REFERENCE_TOKENS):
                ids.append(token)
                seconds, token = self._timed(lambda: self.runner.forward([ids]))
                total_s += seconds
            return read, read_without, write, REFERENCE_TOKENS / total_s

    @staticmethod
    def _timed(forward) -> tuple[float, int]:
        """Seconds of a forward and the best next token; fetching that waits for a GPU to be done."""
        start = time.perf_counter()
        token = int(forward().argmax())
        return time.perf_counter() - start, token

    def about(self) -> dict[str, object]:
        import torch

        from app.engine.kv_cache import KVCache

        cache = KVCache.for_model(self.model, 1, 1)
        return {"model": getattr(self.model, "name", type(self.model).__name__), "device": str(self.model.get_device()),
                "cache_dtype": str(cache.dtype).removeprefix("torch."), "bytes_per_token": cache.bytes_per_token,
                "threads": torch.get_num_threads()}


def table(about: dict[str, object], results: list[Result]) -> list[str]:
    lines = [f"{about['model']}, {about['cache_dtype']}, on {about['device']} with {about['threads']} threads", "",
             "  prompt | reading, tokens/s    | writing, tokens/s              ",
             "  tokens |   cache  without it  |   cache  without it      times ",
             "---------+----------------------+--------------------------------"]
    return lines + [f"{each.prompt_tokens:8,} |{each.read_tokens_per_s:8,.0f} {each.read_tokens_per_s_without_cache:11,.0f}  |"
                    f"{each.write_tokens_per_s:8,.1f} {each.write_tokens_per_s_without_cache:11,.1f} {each.times_faster:9,.1f}x"
                    for each in results]


def batch_table(about: dict[str, object], results: list[BatchResult]) -> list[str]:
    lines = [f"{about['model']}, {about['cache_dtype']}, on {about['device']} with {about['threads']} threads, "
             f"after {results[0].prompt_tokens:,} tokens", "",
             "  rows | writing, tokens/s        ",
             "       |   all together    each row",
             "-------+--------------------------"]
    return lines + [f"{each.rows:6} |{each.write_tokens_per_s:15,.1f} {each.write_tokens_per_s_each:11,.1f}" for each in results]
