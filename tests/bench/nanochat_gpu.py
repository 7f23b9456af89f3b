"""nanochat on a GPU host, in less than five minutes: is it exact there, and how fast is it?

    .venv/bin/python -m tests.bench.nanochat_gpu

First the four fixtures in float32, by one pass and by the engine, against what nanochat computed; then a
chat with one of them in the type that a GPU likes best; then the speed of nanochat's depth-12 model with
random weights. Ends with an exit status of 1 if anything was not exact.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch

from app.engine import Engine, KVCache
from app.models import checkpoint
from app.models.random_weights import random_depth_12

FIXTURES = Path(__file__).parent.parent / "fixtures" / "nanochat"


def check_fixture(folder: Path, device: str) -> bool:
    golden = json.loads((folder / "golden.json").read_text())
    model, tokenizer = checkpoint.load(folder, device, torch.float32)
    with torch.inference_mode():
        logits = model.forward(torch.tensor([golden["prompt_ids"]], device=device), last_only=True)[0, -1]
    difference = (logits.cpu() - torch.tensor(golden["last_logits"])).abs().max().item()
    columns = Engine(model, tokenizer).generate(golden["prompt_ids"], max_tokens=24, temperature=0)
    written = [column[0] for column, _ in columns]
    same = sum(ours == theirs for ours, theirs in zip(written, golden["naive_greedy"]))
    exact = difference < 1e-3 and written == golden["naive_greedy"]
    print(f"{folder.name}: logits differ by at most {difference:.1e}, {same} of 24 tokens are nanochat's"
          f"{'' if exact else '  <-- NOT EXACT'}")
    return exact


def chat(folder: Path, device: str, dtype: torch.dtype) -> None:
    """Three turns on one cache; with random weights the words mean nothing, and that they come is the point."""
    model, tokenizer = checkpoint.load(folder, device, dtype)
    messages = []
    for question in ("Hello!", "What is the capital of France?", "And of Italy?"):
        messages.append({"role": "user", "content": question})
        ids = tokenizer.render_for_completion({"messages": [*messages, {"role": "assistant", "content": ""}]})
        results, _ = Engine(model, tokenizer).generate_batch(ids, max_tokens=32, temperature=0.8, top_k=50)
        messages.append({"role": "assistant", "content": tokenizer.decode(results[0][len(ids):])})
        print(f"  {question!r} -> {messages[-1]['content'][:60]!r}")


@torch.inference_mode()
def measure(device: str, dtype: torch.dtype, prompt_tokens: int = 1024, steps: int = 64) -> None:
    model, _ = random_depth_12(device, dtype)
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    prompt = torch.arange(prompt_tokens, device=device)[None]
    for rows in (1, 8):
        cache = KVCache.for_model(model, rows, prompt_tokens + 2 * steps)
        for timed in (False, True):  # the first round warms up
            cache.reset()
            wait()
            start_s = time.perf_counter()
            for row in range(rows):
                model.forward(prompt, cache.select([row]), last_only=True)
            wait()
            read_s = time.perf_counter() - start_s
            token = torch.zeros(rows, 1, dtype=torch.long, device=device)
            start_s = time.perf_counter()
            for _ in range(steps):
                token = model.forward(token, cache, last_only=True).argmax(-1)
            wait()
            write_s = time.perf_counter() - start_s
        print(f"  {rows} rows: reads {rows * prompt_tokens / read_s:,.0f} and writes {rows * steps / write_s:,.0f} "
              "tokens a second")
    reference = torch.arange(prompt_tokens, device=device)[None]
    start_s = time.perf_counter()
    for _ in range(8):
        model.forward(reference, last_only=True)
    wait()
    print(f"  without a cache, 1 row: writes {8 / (time.perf_counter() - start_s):,.1f} tokens a second")


def main() -> int:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else "no GPU here: this is the processor"
    print(f"{name}, PyTorch {torch.__version__}")
    folders = sorted(FIXTURES.iterdir())
    exact = [check_fixture(folder, device) for folder in folders]
    dtype = torch.bfloat16
    print("a chat in bfloat16")
    chat(folders[-1], device, dtype)
    print("depth 12 with random weights in bfloat16, after 1,024 tokens")
    measure(device, dtype)
    return 0 if all(exact) else 1


if __name__ == "__main__":
    sys.exit(main())
