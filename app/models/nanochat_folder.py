"""Where the files of a nanochat checkpoint lie.

Either side by side, as models are published, or in the tree that nanochat's training leaves:

    FOLDER/model_000650.pt                    TREE/tokenizer/tokenizer.pkl
    FOLDER/meta_000650.json                   TREE/chatsft_checkpoints/d20/model_000650.pt
    FOLDER/tokenizer.pkl                      TREE/chatsft_checkpoints/d20/meta_000650.json

A folder on the way from the tree to the files names them too. Where there is a choice, it is the most
trained stage, the largest `d` and the last step, unless the path says otherwise: `TREE:sft/d20@650`,
any part of which may be left out. This module looks at names only; it must never open a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from app.models.errors import ModelError

STAGES = {"rl": "chatrl_checkpoints", "sft": "chatsft_checkpoints", "mid": "mid_checkpoints",
          "base": "base_checkpoints"}  # the most trained first
STAGE_OF_FOLDER = {folder: stage for stage, folder in STAGES.items()}


@dataclass(frozen=True)
class CheckpointFiles:
    """The three files, all there, and what their place says of them: in a published folder no stage and no tag."""
    model: Path
    meta: Path
    tokenizer: Path
    step: int
    stage: str | None = None
    tag: str | None = None

    @property
    def name(self) -> str:
        return f"{self.tag} {self.stage}" if self.tag else self.model.resolve().parent.name


@dataclass(frozen=True)
class Selection:
    """What a path asks for after its colon; None where it leaves the choice to us."""
    stage: str | None = None
    tag: str | None = None
    step: int | None = None

    @classmethod
    def read(cls, text: str) -> Selection:
        match = re.fullmatch(r"(?P<stage>[^/@]+)?(?:/(?P<tag>[^/@]+))?(?:@(?P<step>\d+))?", text)
        stage = match and match["stage"]
        if not match or not text or (stage and stage not in STAGES):
            raise ModelError(f"{text!r} does not choose a checkpoint: write STAGE/TAG@STEP, such as sft/d20@650, where "
                             f"STAGE is one of {', '.join(STAGES)} and each of the three may be left out.")
        return cls(stage, match["tag"], int(match["step"]) if match["step"] else None)


def find_files(path: str | Path) -> CheckpointFiles:
    """The checkpoint that `path` names; ModelError where there is none, it is not whole, or it cannot be told."""
    folder, selection = Path(path).expanduser(), Selection()
    if not folder.exists() and ":" in str(path):
        folder, _, chosen = str(path).rpartition(":")
        folder, selection = Path(folder).expanduser(), Selection.read(chosen)
    if not folder.exists():
        raise ModelError(f"There is no file or folder {folder}.")
    step_of_file = re.fullmatch(r"model_(\d+)\.pt", folder.name)
    if folder.is_file() and step_of_file:
        return _files_in(folder.parent, int(step_of_file[1]))
    if folder.is_file():
        raise ModelError(f"{folder} is not a nanochat checkpoint, whose name would be model_NNNNNN.pt.")
    return _files_in(_checkpoint_folder(folder, selection), selection.step)


def _checkpoint_folder(folder: Path, selection: Selection) -> Path:
    """From a folder at any height of the tree down to the one that holds the files."""
    if _steps(folder):
        if selection.stage or selection.tag:
            raise ModelError(f"{folder} holds a checkpoint itself: only a step can be chosen in it, "
                             f"as in {folder}:@650.")
        return folder
    if folder.resolve().name in STAGE_OF_FOLDER:
        if selection.stage:
            raise ModelError(f"{folder} is a stage itself: only a tag and a step can be chosen in it.")
        stage_folders = [folder]
    else:
        stages = [selection.stage] if selection.stage else list(STAGES)
        stage_folders = [folder / STAGES[stage] for stage in stages]
    for stage_folder in stage_folders:
        tags = sorted(tag.name for tag in stage_folder.iterdir() if _steps(tag)) if stage_folder.is_dir() else []
        if selection.tag in tags:
            return stage_folder / selection.tag
        if tags and not selection.tag:
            return stage_folder / _largest(tags, stage_folder)
    if selection.stage or selection.tag:
        tag = f"/{selection.tag}" if selection.tag else ""
        raise ModelError(f"{folder} has no checkpoint {selection.stage or ''}{tag}.")
    raise ModelError(f"{folder} holds no nanochat checkpoint: there is neither a model_NNNNNN.pt in it nor a folder "
                     f"{', '.join(STAGES.values())} with one.")


def _largest(tags: list[str], stage_folder: Path) -> str:
    depths = {tag: int(tag[1:]) for tag in tags if re.fullmatch(r"d\d+", tag)}
    if depths:
        return max(depths, key=depths.get)
    if len(tags) > 1:
        raise ModelError(f"{stage_folder} holds {', '.join(tags)}, and none says which is the largest: "
                         "choose one by its path.")
    return tags[0]


def _files_in(folder: Path, step: int | None) -> CheckpointFiles:
    steps = _steps(folder)
    step = max(steps) if step is None else step
    if step not in steps:
        raise ModelError(f"{folder} has no step {step}, only {', '.join(str(number) for number in sorted(steps))}.")
    model = steps[step]
    meta = model.with_name(model.name.replace("model_", "meta_").replace(".pt", ".json"))
    if not meta.is_file():
        raise ModelError(f"{meta} is missing; it belongs beside {model.name}.")
    stage = STAGE_OF_FOLDER.get(folder.resolve().parent.name)
    places = [folder, folder / "tokenizer"]
    if stage:
        places.append(folder.resolve().parent.parent / "tokenizer")
    for place in places:
        if (place / "tokenizer.pkl").is_file():
            return CheckpointFiles(model, meta, place / "tokenizer.pkl", step, stage,
                                   folder.resolve().name if stage else None)
    raise ModelError(f"{places[-1] if stage else folder}/tokenizer.pkl is missing, without which "
                     f"{model.name} cannot be used.")


def _steps(folder: Path) -> dict[int, Path]:
    """The checkpoints that lie in a folder, by step."""
    if not folder.is_dir():
        return {}
    matches = ((re.fullmatch(r"model_(\d+)\.pt", file.name), file) for file in folder.iterdir())
    return {int(match[1]): file for match, file in matches if match}
