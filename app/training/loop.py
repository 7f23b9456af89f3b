"""The training itself: as many processes as processors, one thread each, a share of every batch each.

Processes rather than threads, since threads wait for each other at each of ten thousand small operations a step,
and processes once, when their gradients are added up. What has been learned is written down every now and then,
so that a training that was stopped goes on where it was. This module must never make data.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

from app.training.batches import STEPS_IN_GROUP, Batch, Batches
from app.training.trainable import TrainableLlama


@dataclass(frozen=True)
class Recipe:
    """All that decides what comes out, beside the code and the published model."""

    seed: int = 1
    steps: int = 1400
    sums_a_step: int = 8
    ordinary_a_step: int = 4
    own_answers: int = 2000
    rank: int = 11
    scale: float = 2.0
    learning_rate: float = 1.5e-3
    warm_up_steps: int = 20
    hold: float = 12.0  # weight of the divergence from the published model, in nats a token
    early_hold: float = 5.0  # and in the first steps, while most is learned
    early_steps: int = 360
    mark_hold: float = 0.3  # weight of what a tool mark's log-likelihood in the model's own answers is above mark_limit
    mark_limit: float = -7.0
    processes: int = 2


def train(recipe: Recipe, folder: Path, make_model, make_batches, save_every_steps: int = 40) -> dict[str, torch.Tensor]:
    """-> what was learned, as `TrainableLlama.tensors` names it. `make_model(recipe)` and `make_batches(recipe)` are
    called in each process. `folder` holds the state of a training that was stopped."""
    with tempfile.TemporaryDirectory(dir=folder) as meeting:
        arguments = (recipe, folder, f"file://{meeting}/store", make_model, make_batches, save_every_steps)
        torch.multiprocessing.spawn(_process, arguments, nprocs=recipe.processes)
    return torch.load(folder / "state.pt", weights_only=True)["learned"]


def _process(part: int, recipe: Recipe, folder: Path, meeting: str, make_model, make_batches,
             save_every_steps: int) -> None:
    parent = os.getppid()
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=meeting, rank=part, world_size=recipe.processes)
    model: TrainableLlama = make_model(recipe)
    batches: Batches = make_batches(recipe)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, weight_decay=0.0, fused=True)
    file = folder / "state.pt"
    first = _take_up(file, recipe, model, optimizer)
    bar = tqdm(total=recipe.steps, initial=first, desc="training", disable=part != 0)
    for step in range(first, recipe.steps):
        if os.getppid() != parent:  # whoever started this was killed, and would start it again
            os._exit(1)
        if step == first or step % STEPS_IN_GROUP == 0:
            group = batches.group(step // STEPS_IN_GROUP, part)
        for settings in optimizer.param_groups:
            settings["lr"] = _learning_rate(step, recipe)
        hold = recipe.early_hold if step < recipe.early_steps else recipe.hold
        sums, held = _step(model, optimizer, *group[step % STEPS_IN_GROUP], recipe, hold)
        bar.set_postfix(calculator=f"{sums:.3f}", divergence=f"{held:.4f}", refresh=False)
        bar.update()
        if part == 0 and ((step + 1) % save_every_steps == 0 or step + 1 == recipe.steps):
            _write_down(file, recipe, step + 1, model, optimizer)
    dist.barrier()
    dist.destroy_process_group()


def _step(model: TrainableLlama, optimizer, calculated: Batch, own: Batch, recipe: Recipe, hold: float) -> tuple[float, float]:
    """-> the two losses of this process, nats a token: of the calculator's conversations, and the divergence."""
    optimizer.zero_grad()
    loss = weighted_loss(model, calculated)
    loss.backward()
    with torch.no_grad():
        published = F.linear(own.published, model.embedding).float().log_softmax(-1)
    here = model.logits(model.hidden(own.ids, own.wanted)).log_softmax(-1)
    divergence = F.kl_div(here, published, log_target=True, reduction="batchmean")
    # a mark that has become a little likely in plain text adds next to nothing to the divergence, and is a broken answer
    marks = (here[:, model.token_ids] - recipe.mark_limit).relu().sum(-1).mean()
    (hold * divergence + recipe.mark_hold * marks).backward()
    _share(list(model.parameters()), recipe)
    optimizer.step()
    return loss.item(), divergence.item()


def weighted_loss(model: TrainableLlama, batch: Batch) -> torch.Tensor:
    losses = F.cross_entropy(model.logits(model.hidden(batch.ids, batch.wanted)), batch.targets, reduction="none")
    weights = batch.weights[batch.wanted]
    return (losses * weights).sum() / weights.sum()


def _share(parameters: list[nn.Parameter], recipe: Recipe) -> None:
    """Each process gets the mean of all processes' gradients."""
    gradients = torch.cat([parameter.grad.flatten() for parameter in parameters])
    dist.all_reduce(gradients)
    for parameter, gradient in zip(parameters, gradients.div_(recipe.processes).split([p.numel() for p in parameters])):
        parameter.grad.copy_(gradient.view_as(parameter))
    nn.utils.clip_grad_norm_(parameters, 1.0)


def _learning_rate(step: int, recipe: Recipe) -> float:
    """Up to its height in the first steps, then down to 0 in a straight line."""
    left = (recipe.steps - step) / (recipe.steps - recipe.warm_up_steps)
    return recipe.learning_rate * min((step + 1) / recipe.warm_up_steps, left)


def _take_up(file: Path, recipe: Recipe, model: TrainableLlama, optimizer) -> int:
    """The step to go on with: 0, or where a training with the same recipe was stopped."""
    if not file.exists():
        return 0
    state = torch.load(file, weights_only=True)
    if state["recipe"] != asdict(recipe):
        return 0
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["steps"]


def _write_down(file: Path, recipe: Recipe, steps: int, model: TrainableLlama, optimizer) -> None:
    half = file.with_suffix(".half")
    torch.save({"recipe": asdict(recipe), "steps": steps, "model": model.state_dict(), "learned": model.tensors(),
                "optimizer": optimizer.state_dict()}, half)
    half.replace(file)
