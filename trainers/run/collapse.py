"""A guard of runs that learn from rewards: ends a run whose rewriter collapses, and keeps its best checkpoint."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.trainer.states import TrainerFn

from common.ranges import PositiveFloat, Share
from trainers.run.lightning_private import mark_saved, validate_now

KL, UNCHANGED, EMPTY = "val/kl", "val/unchanged_share", "val/empty_share"
REWARDS = ("val/reward", "val/expected_reward")


class CollapseGuard(Callback):
    """Ends a run after a validation that a limit forbids.

    Its state is never best.ckpt, which is exported as at any end.

    Validates before the first step: this gives the rewards that later ones are compared with, and the starting model is
    best.ckpt until a validation is better. A measure that the run's validation lacks is not checked, nor is a share
    that exceeds its limit from the start. Such a run ends again when it is resumed with the same limits.

    Args:
        max_kl_nats: Limit of val/kl, the divergence from the starting model; null for none.
        max_reward_drop: By how much val/reward and val/expected_reward may fall below those of the starting model, in
            units of the reward; null for none.
        max_unchanged_share: Limit of val/unchanged_share, the share of rewrites that are the question, in [0, 1]; null
            for none.
        max_empty_share: Limit of val/empty_share, the share of rewrites without a query, in [0, 1]; null for none.
    """

    def __init__(
        self,
        max_kl_nats: PositiveFloat | None = None,
        max_reward_drop: PositiveFloat | None = 0.1,
        max_unchanged_share: Share | None = 0.95,
        max_empty_share: Share | None = 0.5,
    ) -> None:
        self.max_kl_nats, self.max_reward_drop = max_kl_nats, max_reward_drop
        self.shares = {
            UNCHANGED: ("max_unchanged_share", max_unchanged_share),
            EMPTY: ("max_empty_share", max_empty_share),
        }
        self.start: dict[str, float] = {}  # measures of the first validation
        self.last: dict[str, float] = {}  # of the newest one
        self.step = 0  # at which it was made

    def state_dict(self) -> dict[str, Any]:
        """The measures of the first and the newest validation."""
        return {"start": self.start, "last": self.last, "step": self.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore them."""
        self.start, self.last, self.step = state_dict["start"], state_dict["last"], state_dict["step"]

    @property
    def collapse(self) -> str:
        """Which limit the newest validation has passed, by its name, value and limit; empty if none."""
        kl = self.last.get(KL)
        if self.max_kl_nats is not None and kl is not None and not kl <= self.max_kl_nats:
            return self._passed(KL, "above max_kl_nats", self.max_kl_nats)
        for name in REWARDS:
            if self.max_reward_drop is not None and name in self.last and name in self.start:
                least = self.start[name] - self.max_reward_drop
                if not self.last[name] >= least:
                    return self._passed(name, f"below the start's {self.start[name]:.4g} less max_reward_drop", least)
        for name, (option, most) in self.shares.items():
            if most is not None and name in self.last and self.start.get(name, 0.0) <= most < self.last[name]:
                return self._passed(name, f"above {option}", most)
        return ""

    def _passed(self, name: str, how: str, limit: float) -> str:
        return f"the rewriter has collapsed: {name} {self.last[name]:.4g} at step {self.step:,} is {how}, {limit:.4g}"

    def on_train_epoch_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Validate before the first step of the run; all callbacks and loggers have started by then."""
        if not self.start and trainer.global_step == 0:
            for callback in trainer.checkpoint_callbacks:
                if (callback.monitor or "").startswith("val/"):
                    mark_saved(callback, -1)
            validate_now(trainer)

    def on_validation_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Compare the measures with the limits; called before checkpoints are written."""
        if trainer.sanity_checking or trainer.state.fn != TrainerFn.FITTING:
            return
        self.last, self.step = self._measures(trainer.callback_metrics), trainer.global_step
        self.start = self.start or self.last
        if self.collapse:
            trainer.should_stop = True
            for callback in trainer.checkpoint_callbacks:
                mark_saved(callback, trainer.global_step)  # its state is saved as last.ckpt alone

    @staticmethod
    def _measures(metrics: Mapping[str, Any]) -> dict[str, float]:
        found = {name: float(metrics[name]) for name in (KL, *REWARDS, UNCHANGED, EMPTY) if name in metrics}
        return {name: value if isfinite(value) else float("nan") for name, value in found.items()}


def collapse_of(trainer: pl.Trainer) -> str:
    """Why a guard has ended the run; empty if none has."""
    guards = [callback for callback in trainer.callbacks if isinstance(callback, CollapseGuard)]
    return next((guard.collapse for guard in guards if guard.collapse), "")
