"""Base class of the trainers.

Metrics of training and validation, gathered over ranks and accumulated batches and logged.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, is_dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any, ClassVar, Self

import pytorch_lightning as pl
import torch
import torch.distributed as dist
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor
from torch.optim import Optimizer
from transformers import PreTrainedModel

from common.errors import ArtifactError
from common.shown_text import markdown
from models.serving_manifest import CARD
from trainers.run.learning import LOSS_DROP, doubts
from trainers.run.model_card import Card, model_card, origin_of, validation_results
from trainers.run.optimizers import follow_schedule
from trainers.run.starting_weights import Start, StartOption, start_of
from trainers.run.strategies import Fsdp2Strategy, refuse_strategy
from trainers.run.trainer import refuse_precision

STARTS, BASES = "start_nats", "frozen_bases"  # keys in a checkpoint
LONGEST = 200  # characters of a difference in a message


class RunModule(pl.LightningModule):
    """Metrics that do not depend on the number of ranks, nor on accumulation.

    A subclass makes its networks in `build`, from what `start` finds for the options of `starts`, gives `add_shares`
    its batch's shares of the step's metrics (in `training_step`), stores per-example results by row number in
    `validated` (in `validation_step`), and implements `summarize` and `metric_names`. Its constructor checks how its
    options go together, and loads nothing.
    """

    lower: ClassVar[str]  # what to lower where a batch does not fit the memory; ends a message
    shardable: ClassVar[bool] = False  # whether all ranks run equally many forward passes, as FSDP2 needs
    checkpoint_keys: ClassVar[dict[str, str]] = {"validation_facts": "validation_metrics"}  # key -> attribute
    starts: ClassVar[Mapping[str, StartOption]] = {}  # parameters that name a model to start from

    def __init__(self) -> None:
        super().__init__()
        self.loaded = False
        self.validated: dict[int, Any] = {}
        self.validation_metrics: dict[str, float] = {}
        self.start_nats: dict[int, float] = {}  # losses of the validation examples that were checked before training
        self.figures: dict[str, Any] = {}
        self.flops_per_batch = 0
        self.card = Card()
        self.shares: dict[str, Tensor] = {}  # sums over this rank's batches of the optimizer step so far
        self.last_step: float = 0  # number of optimizer steps at which the run ends, unless it stops early
        self._started: dict[str, Start] = {}  # what `build` has asked for
        self._models: dict[str, tuple[str, str | None]] = {}  # option -> folder or hub id, and checkpoint, of a start

    def build(self) -> None:
        """Make the networks.

        Raises:
            MissingInputError: If a model is not on this machine.
            UserError: If an option does not fit a model.
        """
        raise NotImplementedError

    def start(self, option: str) -> str:
        """Folder or hub id, for transformers, of the model that an option of `starts` names.

        Where it names a checkpoint, its weights follow when the networks are made.  Errors as `start_of`.
        """
        start = start_of(self.hparams[option], option, self.starts[option])
        self._started[option], self._models[option] = start, (start.model, start.file)
        return start.model

    def begin_from(self, option: str, start: Start) -> None:
        """Take a checkpoint's weights of the model that an option of `starts` names.

        Raises:
            ArtifactError: If they belong to another model.
        """
        part = self.starts[option].part
        try:
            getattr(self, part).load_state_dict(start.part(part))
        except RuntimeError as error:
            raise ArtifactError(
                f"model.{option}: {start.file} holds another model ({_differences(error)}): give the options that "
                "shape it as in its run (max_tokens, layers, lora), or start from the serving folder of that run."
            ) from error

    def load(self) -> Self:
        """This module with its networks, which are made at the first call.

        Not in `configure_model`, where Lightning would have them: the data module's `setup` comes before it, and needs
        the tokenizers.

        Errors as `build`, `start` and `begin_from`.
        """
        if not self.loaded:
            self.build()
            for option, start in self._started.items():
                if start.file is not None:
                    self.begin_from(option, start)
            self._started = {}
            self.loaded = True
            self.train()  # `from_pretrained` returns modules in eval mode, and Lightning keeps it: without dropout
        return self

    def setup(self, stage: str) -> None:
        """Check precision and strategy, also where the trainer was made without `train.py`, or a plugin sets it."""
        refuse_precision(self.trainer.precision)
        refuse_strategy(self.trainer.strategy, self.shardable)
        self.load()

    @property
    def network_to_shard(self) -> PreTrainedModel:
        """The network whose weights FSDP2 divides; for trainers that are `shardable`."""
        raise NotImplementedError

    def configure_model(self) -> None:
        """Divide the weights among the ranks under FSDP2."""
        if isinstance(self.trainer.strategy, Fsdp2Strategy):
            self.trainer.strategy.shard(self.network_to_shard)

    def whole(self) -> Self:
        """This module, or under FSDP2 one without its weights whose forward passes do not wait for other ranks."""
        if not isinstance(self.trainer.strategy, Fsdp2Strategy):
            return self
        made = copy(self)
        made.trainer, made._modules, made.loaded = self.trainer, {}, False
        return made.load()

    def summarize(self, results: list[Any]) -> dict[str, float]:
        """Metrics by name, from the results of all examples in row order."""
        raise NotImplementedError

    def nats(self, result: Any) -> float | None:
        """The loss of an example, from its result, if it is to fall in training below that of the starting model.

        None where labels are learned, whose figure is `explained`.
        """
        return None

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The metrics of `summarize` that can choose a checkpoint; the one to propose comes first."""
        raise NotImplementedError

    def controls(self) -> dict[str, float]:
        """Figures of the weights that are exported, by name without `val/`; see `trainers.run.controls`.

        Measured once, at the end of training, on rank 0 alone: nothing in it may wait for other ranks. None of them can
        choose a checkpoint.
        """
        return {}

    @property
    def backward_passes(self) -> int:
        """Backward passes of one optimizer step, over all ranks.

        Lightning divides the sum of their gradients by this number.
        """
        return self.trainer.world_size * self.trainer.accumulate_grad_batches

    def on_train_start(self) -> None:
        """Forget the shares of a step that an earlier call of `fit` did not finish, and set the learning rate."""
        self.shares = {}
        follow_schedule(self.trainer)
        self.last_step = self.trainer.estimated_stepping_batches

    def add_shares(self, shares: Mapping[str, Tensor]) -> None:
        """Add a batch's shares of the metrics of its optimizer step.

        Args:
            shares: A scalar per metric, the same metrics for every batch. Summed over the ranks and the accumulated
                batches of the step, they are what is logged.
        """
        for name, share in shares.items():
            self.shares[name] = share.detach().float() + self.shares.get(name, 0)

    def is_logged(self, step: int) -> bool:
        """Whether optimizer step `step` (from 0) is logged.

        The first, every `log_every_n_steps`-th and the last of the run.
        """
        interval = self.trainer.log_every_n_steps
        return interval > 0 and (step == 0 or (step + 1) % interval == 0 or step + 1 == self.last_step)

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Log the step's metrics, the norm of the whole gradient before clipping, and the learning rates.

        Lightning would log after the checkpoint callbacks: a run killed in between would lose the step's metrics.
        """
        shares, self.shares = self.shares, {}
        step = self.trainer.global_step
        if not self.is_logged(step):
            return
        sums = self.trainer.strategy.reduce(torch.stack(list(shares.values())), reduce_op="sum")
        metrics = dict(zip(shares, sums, strict=True))
        first, *others = metrics
        self.log(first, metrics[first], prog_bar=True, logger=False)
        self.log_dict({name: metrics[name] for name in others}, logger=False)
        gradients = [parameter.grad for parameter in self.parameters() if parameter.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        self.send({**metrics, "train/grad_norm": norm, **self.learning_rates(optimizer)}, step)

    def learning_rates(self, optimizer: Optimizer) -> dict[str, float]:
        """The learning rates of this optimizer step by the names under which they are logged."""
        return {"train/learning_rate": optimizer.param_groups[0]["lr"]}

    def next_step(self, serving: Path) -> str:
        """The commands to type after training, with the exported folder `serving`; FILE and FOLDER are the user's."""
        raise NotImplementedError

    def retriever_options(self, otherwise: str) -> str:
        """Options of a system that searches as the data module's `search` did; `otherwise` if it has none."""
        search = self.trainer.datamodule.search
        if search is None:
            return otherwise
        return f"--system.init_args.retriever {search.retriever} --index_root {search.index_root} "

    def send(self, metrics: Mapping[str, float | Tensor], step: int) -> None:
        """Send metrics of optimizer step `step` (from 0), or of the validation after it, to the loggers."""
        row = {name: float(value) for name, value in metrics.items()}
        for logger in self.trainer.loggers:
            logger.log_metrics({**row, "epoch": self.trainer.current_epoch}, step)
            logger.save()

    def on_validation_epoch_end(self) -> None:
        """Gather the results of all ranks, drop repeated examples, and log the metrics.

        Of the few batches that Lightning checks before training, keep the losses that training starts from.
        """
        ranks: list[Any] = [self.validated] * self.trainer.world_size
        if self.trainer.world_size > 1:
            dist.all_gather_object(ranks, self.validated)
        self.validated = {}
        distinct = {row: result for results in ranks for row, result in results.items()}
        nats = {row: loss for row, result in distinct.items() if (loss := self.nats(result)) is not None}
        if self.trainer.sanity_checking:  # a few batches, perhaps of one class: too few to summarize
            if self.trainer.global_step == 0:
                self.start_nats = nats
            return
        self.validation_metrics = self.summarize([distinct[row] for row in sorted(distinct)])
        if self.start_nats and self.start_nats.keys() <= nats.keys():
            now, start = (sum(losses[row] for row in self.start_nats) for losses in (nats, self.start_nats))
            self.validation_metrics[LOSS_DROP] = 1 - now / start if start > 0 else 0.0
        named = {f"val/{name}": number for name, number in self.validation_metrics.items()}
        fitting = self.trainer.state.fn == TrainerFn.FITTING
        if fitting:
            self.send(named, self.trainer.global_step - 1)
        # For callbacks.  The ranks have equal values: their maximum is exact, their mean might be rounded.
        to_loggers = not fitting and bool(self.trainer.loggers)
        self.log_dict(named, logger=to_loggers, sync_dist=True, reduce_fx="max")

    def write_card(
        self,
        folder: Path,
        template: Path,
        values: Mapping[str, Any],
        provenance: Mapping[str, Any],
        starts: Sequence[str] = ("pretrained",),
        library: str = "transformers",
        reranks: bool = False,
    ) -> None:
        """Write a model card as README.md of a serving folder.

        Args:
            folder: The serving folder.
            template: See `trainers.run.model_card.model_card`, as the next two.
            values: What the template names besides the constructor's parameters, `validation` and `data`.
            provenance: Of the run.
            starts: The parameters that name the models that training started from.
            library: That loads its files.
            reranks: Whether it is a reranker: its validation then stands in the model-index.
        """
        named = [f"{name} {value:.4g}" for name, value in self.validation_metrics.items()]
        figures = markdown(", ".join(named) or "none yet")
        if found := doubts(self.validation_metrics):
            figures += f". **This model has not learned:** {'; '.join(found)}"
        values = {**self.hparams, "validation": figures, **values}
        origins = {name: origin_of(*self._models[name]) for name in starts if values[name]}
        sources, measured = self.trainer.datamodule.sources, self.validation_metrics
        chosen = {name: measured[name] for name in self.metric_names if reranks and name in measured}
        results, name = validation_results(chosen, sources), folder.absolute().parent.name
        text = model_card(template, self.card, origins, values, sources, provenance, results, library, name)
        (folder / CARD).write_text(text, encoding="utf-8")

    @property
    def bases(self) -> Mapping[str, dict[str, Any]]:
        """Name and sha256 of the models whose weights are not trained and in no checkpoint, by part."""
        return {}

    def kept(self, state: dict[str, Any]) -> dict[str, Any]:
        """The part of the weights that checkpoints hold: all but those of `bases`."""
        return state

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The weights, without those of `bases`."""
        return self.kept(super().state_dict(*args, **kwargs))

    def check_bases(self, theirs: Mapping[str, Any]) -> None:
        """Raise ArtifactError if a checkpoint, of whose `bases` these are, was trained on other weights."""
        for name, own in self.bases.items():
            if name in theirs and theirs[name].get("sha256") != own["sha256"]:
                raise ArtifactError(
                    f"the checkpoint's {name} belongs to {theirs[name].get('name', 'no model')} with other weights "
                    f"than those of {own['name']}: give the model that it was trained on."
                )

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Store the validation results with the weights; options as plain dicts, which any version can read."""
        options = checkpoint.get(self.CHECKPOINT_HYPER_PARAMS_KEY, {})
        nested = {name: value for name, value in options.items() if is_dataclass(value) and not isinstance(value, type)}
        options |= {name: asdict(value) for name, value in nested.items()}
        checkpoint.update({key: dict(getattr(self, name)) for key, name in self.checkpoint_keys.items()})
        checkpoint |= {STARTS: dict(self.start_nats), BASES: dict(self.bases)}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the validation results.

        Raises:
            ArtifactError: If the checkpoint was trained on other weights than those of `bases`.
        """
        self.load()
        self.check_bases(checkpoint.get(BASES, {}))
        for key, name in self.checkpoint_keys.items():
            setattr(self, name, checkpoint[key])
        self.start_nats = checkpoint.get(STARTS, {})  # earlier releases wrote none

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Load weights; those of `bases` stay as they are.

        Raises:
            ArtifactError: If they belong to another model.
        """
        self.load()
        if self.bases and state_dict.keys() == self.state_dict().keys():
            return super().load_state_dict(state_dict, strict=False)
        try:
            return super().load_state_dict(state_dict, *args, **kwargs)
        except RuntimeError as error:
            raise ArtifactError(
                f"the checkpoint holds another model ({_differences(error)}): resume with the config.yaml of the run "
                "that wrote it."
            ) from error


def _differences(error: RuntimeError) -> str:
    """The first of the differences that torch finds between a model and weights, and their number."""
    lines = [line.strip() for line in str(error).splitlines()[1:]] or [str(error)]
    return f"{shorten(lines[0], LONGEST, placeholder=' ...')}; {len(lines)} such differences"
