"""Trains DMQR-RAG's generative rewriters by imitation: supervised fine-tuning on given rewrites, whole or with LoRA.

Shape legend: P rewrites, T tokens, A tokens of a rewrite.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from transformers import PreTrainedModel

from common.answer_metrics import usual_scores
from common.errors import UserError
from common.files import read_json
from common.ranges import DropoutRate, NonNegativeInt, PositiveInt
from common.records import clean
from common.rewrites import Rewrites
from datamodules.dmqr import RewriteBatch
from datamodules.dmqr_recall import Recall, recalls
from models.dmqr.rewriter import KIND, PART, MergedType, RewriterModel, own_adapters, read_rewriter_manifest
from models.dmqr.strategies import Pool
from models.length_batching import IGNORE
from models.lora import Lora, adapter_names, adapter_parameters, adapters_of, add_adapter
from models.pretrained import base_model
from models.quantization import BaseBits, check_base_bits, check_quantized_device, compute_in, unquantized_shape
from models.serving_manifest import CURE, MANIFEST
from models.text_formats import InputTokens
from trainers.dmqr_export import export_difference, on_fp32_base, tell_quantization
from trainers.dmqr_validation import RewriteValidation, is_question, summary
from trainers.run.module import BASES, RunModule
from trainers.run.optimizers import Optimizer, decay_groups
from trainers.run.starting_weights import Start, StartOption
from trainers.run.throughput import flops_per_token


class RewriterTrainer(RunModule):
    """Mean cross-entropy of the rewrites' tokens in an optimizer step, their ends included; inputs are not learned.

    One model, one adapter for all strategies of the files, or one adapter for each; the input names the strategy in any
    case. With LoRA, checkpoints hold the adapters alone, and the model that they belong to is compared by sha256 when
    training resumes.

    Args:
        pretrained: What to start from: folder or hub id of a T5-family model or a causal LM; or the serving folder or a
            checkpoint of an earlier run of a rewriter. Of a serving folder the merged model is taken, of a checkpoint
            with LoRA the adapter too, which is trained on.
        max_tokens: Maximum input length: strategy, history and question, in tokens.
        max_rewrite_tokens: Maximum length of a rewrite, in tokens.
        no_repeat_ngram: Of a T5: no generated rewrite has a sequence of so many tokens twice, in validation and in use;
            0 for no such limit.
        pool: YAML file with strategies of your own, as `models.dmqr.strategies.Pool.load` reads it; none when null.
        lora: The adapter.
        base_bits: 4 (NF4) or 8 (LLM.int8()): bits of the base model's linear layers, by bitsandbytes, to save memory;
            needs LoRA. 32 when null. Exported is the adapter on the model's own fp32 weights.
        adapters: `shared`: one adapter for all strategies. `per_strategy`: one each for the strategies of the training
            files; rows of a step change the adapter of their strategy alone.
        dropout: Dropout rate of a T5; the checkpoint's when null.
        optimizer: AdamW.
        merged: Data type of the exported merged model.  The adapter is added in fp32 and kept in fp32 beside it.  With
            per_strategy nothing is merged: of the exported base model.
        gradient_checkpointing: Recompute activations in the backward pass: less memory, about a third slower.

    Raises:
        UserError: If adapters for each strategy or a quantized base are wanted without LoRA.
    """

    lower: ClassVar = (
        "lower data.rewrites_per_step or model.max_tokens, raise trainer.accumulate_grad_batches, or set "
        "model.gradient_checkpointing"
    )
    starts: ClassVar = {"pretrained": StartOption("rewriter", {KIND: PART})}

    def __init__(
        self,
        pretrained: str = "google/flan-t5-base",
        max_tokens: InputTokens = 256,
        max_rewrite_tokens: PositiveInt = 64,
        no_repeat_ngram: NonNegativeInt = 0,
        pool: str | None = None,
        lora: Lora = Lora(16, dropout=0.05),
        base_bits: BaseBits | None = None,
        adapters: Literal["shared", "per_strategy"] = "shared",
        dropout: DropoutRate | None = None,
        optimizer: Optimizer = Optimizer(3e-4),
        merged: MergedType = "float32",
        gradient_checkpointing: bool = False,
    ) -> None:
        super().__init__()
        if adapters == "per_strategy" and lora.rank is None:
            raise UserError("model.adapters per_strategy needs LoRA: give model.lora.rank, such as 16.")
        check_base_bits(base_bits, lora.rank)
        self.save_hyperparameters()
        self.optimizer, self.lora = optimizer, lora
        self.shape: PreTrainedModel | None = None  # in the place of a quantized network, for FLOPs
        self._idle: list[torch.nn.Parameter] = []  # of adapters that have no row in the step

    def build(self) -> None:
        """See `RunModule`.

        Raises:
            UserError: Also if training would start from the base of adapters for each strategy.
        """
        given, self.source = self.hparams, self.start("pretrained")
        self._options = {**given, "pretrained": self.source}  # with the model that transformers reads
        refuse_base_of_adapters(Path(self.source))
        strategies = Pool.load(Path(given.pool) if given.pool else None).strategies
        self.rewriter = RewriterModel.build(
            self.source, given.max_tokens, given.max_rewrite_tokens, strategies, given.dropout,
            given.gradient_checkpointing, given.base_bits, given.no_repeat_ngram,
        )  # fmt: skip
        if given.base_bits is not None:
            self.shape = unquantized_shape(self.rewriter.network)
        if self.lora.rank is not None and given.adapters == "shared":
            add_adapter(self.rewriter.network, self.source, self.lora)
        self._count_flops()

    @cached_property
    def bases(self) -> dict[str, dict[str, Any]]:
        """See `RunModule`: the model that the adapter belongs to; empty without one."""
        return {PART: base_model(self.source)} if self.lora.rank else {}

    def begin_from(self, option: str, start: Start) -> None:
        """See `RunModule`; of a checkpoint with LoRA these are the adapter's weights.

        Raises:
            UserError: If one of the runs trains an adapter and the other all weights, its adapters are other ones, or
                it was trained with an option of an earlier release, such as another tokenizer.
            ArtifactError: Also if the adapter belongs to another model.
        """
        adapted = bool(adapter_names(start.state))
        if adapted != bool(self.bases):
            raise UserError(
                f"{start.file} holds {'an adapter' if adapted else 'all weights'}: give model.lora as in its run, or "
                "start from the serving folder of that run."
            )
        if (adapters := start.options.get("adapters", self.hparams.adapters)) != self.hparams.adapters:
            raise UserError(f"{start.file} was trained with adapters {adapters}: set model.adapters to it, too.")
        if left := [name for name, value in start.options.items() if value is True and name not in self.hparams]:
            raise UserError(
                f"{start.file} was trained with {left[0]}, an option that this release has not: start from the serving "
                "folder of its run."
            )
        self.check_bases(start.facts.get(BASES, {}))
        if self.hparams.adapters == "per_strategy":
            self._add_adapters(adapter_names(start.state))
        if not self.bases or start.state.keys() != self.state_dict().keys():
            super().begin_from(option, start)
        else:
            self.rewriter.load_state_dict(start.part("rewriter"), strict=False)

    def setup(self, stage: str) -> None:
        """Check the precision, and add the strategies' adapters.

        Raises:
            UserError: If validation has a strategy that has no adapter.
        """
        super().setup(stage)
        if self.hparams.base_bits is not None:
            check_quantized_device(self.trainer.strategy.root_device)
            half = str(self.trainer.precision).startswith("bf16")
            compute_in(self.rewriter.network, torch.bfloat16 if half else torch.float32)
        if self.hparams.adapters == "per_strategy":
            data = self.trainer.datamodule
            unknown = sorted({each.example.strategy for each in data.held_out} - set(data.strategies))
            if unknown:
                raise UserError(
                    f"validation holds rewrites by {unknown[0]!r}, and training none, so that it has no adapter: set "
                    "model.adapters to shared, or give other files."
                )
            self._add_adapters(data.strategies)
            lacking = sorted(set(data.strategies) - set(adapters_of(self.rewriter.network)))
            if lacking:
                raise UserError(
                    f"model.pretrained has no adapter for the strategy {lacking[0]!r}: give files of its strategies, "
                    "or start from another model."
                )

    def _add_adapters(self, strategies: Sequence[str]) -> None:
        """One for each strategy, unless there are some."""
        if self.rewriter.adapters is None:
            self.rewriter.add_adapters(strategies[:1], self.source, self.lora)
            self._count_flops()  # a token is multiplied with one of them
            self.rewriter.add_adapters(strategies[1:], self.source, self.lora)
            self.train(self.training)  # the mode of what was added, too

    def _count_flops(self) -> None:
        if self.shape is not None and adapters_of(self.rewriter.network):
            with torch.device("meta"):
                add_adapter(self.shape, self.source, self.lora)
        self.flops_per_token = flops_per_token(self.shape or self.rewriter.network)

    def forward(self, batch: RewriteBatch) -> Tensor:
        """Negative log-likelihood of every token of the rewrites, (P, A), nats, fp32; 0 for padding."""
        return -self.rewriter(batch.ids_PT, batch.attention_PT, batch.labels_PA, batch.strategies)

    def training_step(self, batch: RewriteBatch, batch_index: int) -> Tensor:
        """This rank's share of the step's loss, scaled to undo Lightning's mean over ranks and accumulated batches."""
        share = (self(batch).sum(dim=1) * batch.weights_P).sum() / batch.step_tokens
        per_input, per_target = self.flops_per_token
        self.flops_per_batch = per_input * batch.ids_PT.numel() + per_target * batch.labels_PA.numel()
        self.add_shares({"train/loss_nats": share})
        self._idle = self._parameters_without(batch.step_strategies)
        if self.trainer.world_size > 1:  # DDP waits for a gradient of every weight
            share = share + sum(each.sum() for each in self._parameters_without(batch.strategies)) * 0.0
        return share * self.backward_passes

    def _parameters_without(self, strategies: Sequence[str]) -> list[torch.nn.Parameter]:
        """The weights of adapters of other strategies than these, where each has its own."""
        network = self.rewriter.network
        names = adapters_of(network) if self.rewriter.adapters is not None else ()
        return [each for name in names if name not in strategies for each in adapter_parameters(network, name)]

    def on_after_backward(self) -> None:
        """Remove gradients of adapters that have no row in the whole step.

        Neither decay nor momentum may change them.
        """
        for each in self._idle:
            each.grad = None

    def validation_step(self, batch: RewriteBatch, batch_index: int) -> None:
        """Collect each row's loss and tokens, the scores of generated rewrites, and searched questions' recall."""
        data = self.trainer.datamodule
        nll_P = self(batch).double().sum(dim=1).tolist()
        tokens_P = (batch.labels_PA != IGNORE).sum(dim=1).tolist()
        rows = batch.rows_P.tolist()
        generated = [row for row in rows if row in data.generated]
        chosen = [data.held_out[row] for row in generated]
        written = self.rewriter.write([each.input for each in chosen], [each.example.strategy for each in chosen])
        texts = dict(zip(generated, written, strict=True))
        recall_of = self._recalls([row for row in rows if row in data.gold])
        for row, nll, tokens in zip(rows, nll_P, tokens_P, strict=True):
            example, text = data.held_out[row].example, texts.get(row)
            scores = None if text is None else usual_scores(text, [example.rewrite])
            queries = () if text is None else self.rewriter.queries(text, example.strategy)
            self.validated[row] = RewriteValidation(
                nll, tokens, example.strategy, scores, text is not None and not queries, recall_of.get(row),
                is_question(queries, example.question),
            )  # fmt: skip

    def _recalls(self, rows: list[int]) -> dict[int, Recall]:
        """The recall of these rows' questions, each rewritten by every strategy of the training files."""
        if not rows:
            return {}
        data = self.trainer.datamodule
        questions = [(clean(each.question), each.history) for each in (data.held_out[row].example for row in rows)]
        queries = []
        for (question, _), texts in zip(questions, self.rewriter.rewrite(questions, data.strategies), strict=True):
            made = {name: self.rewriter.queries(text, name) for name, text in texts.items()}
            queries.append(Rewrites(made).distinct(question))
        found = recalls(data.retriever, data.recall_k, queries, [data.gold[row] for row in rows])
        return dict(zip(rows, found, strict=True))

    @property
    def metric_names(self) -> tuple[str, ...]:
        """See `RunModule`; recall is measured where the data module has a retriever."""
        data = self.trainer.datamodule
        return "f1", "em", "loss_nats", *([f"recall_at_{data.recall_k}"] if data.gold else [])

    def nats(self, result: RewriteValidation) -> float:
        """See `RunModule`."""
        return result.nll

    def summarize(self, results: list[RewriteValidation]) -> dict[str, float]:
        """See `trainers.dmqr_validation.summary`."""
        return summary(results, f"recall_at_{self.trainer.datamodule.recall_k}")

    def configure_optimizers(self) -> dict[str, Any]:
        """See `Optimizer`; frozen weights are left out."""
        rate, decay = self.optimizer.learning_rate, self.optimizer.weight_decay
        return self.optimizer.adamw(decay_groups(self.rewriter.parameters(), rate, decay), self.trainer)

    # Checkpoints

    def kept(self, state: dict[str, Any]) -> dict[str, Any]:
        """See `RunModule`: with LoRA the adapter alone."""
        if not self.lora.rank:
            return state
        trained = {name for name, parameter in self.named_parameters() if parameter.requires_grad}
        return {name: value for name, value in state.items() if name in trained}

    def load_state_dict(self, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        """See `RunModule`; strategies' adapters are added."""
        self.load()
        if self.hparams.adapters == "per_strategy":
            self._add_adapters(adapter_names(state_dict))
        return super().load_state_dict(state_dict, *args, **kwargs)

    # Export

    def next_step(self, serving: Path) -> str:
        """See `RunModule`."""
        rewriter = "--system.init_args.rewriter harness.rewriters.trained.TrainedRewriter --system.init_args.rewriter"
        strategies = f"--system.init_args.strategies '[{', '.join(self.trainer.datamodule.strategies)}]'"
        ask = "search with it: python infer.py ask --config FILE"
        return f"{ask} {rewriter}.init_args.serving {serving} {strategies}"

    def export(self, folder: Path, provenance: dict[str, Any]) -> None:
        """Write model, adapters, model card and manifest into a serving folder.

        Args:
            folder: An empty folder.
            provenance: Versions, commit and data digests, stored unchanged.
        """
        strategies = self.trainer.datamodule.strategies
        values = {"rewriter": self.rewriter, "strategies": strategies}
        self.write_card(folder, Path(__file__).with_name("dmqr_card.md"), values, provenance)
        exact = on_fp32_base(self.rewriter, self._options, self.lora)
        exact.save(
            folder, strategies, self.bases.get(PART, {}), self.hparams.merged, validation=self.validation_metrics,
            base_bits=self.hparams.base_bits, **provenance,
        )  # fmt: skip

    def export_difference(self, folder: Path, batch: RewriteBatch) -> float:
        """Largest difference of a token's log-probability, nats, to the exported files; see `trainers.dmqr_export`.

        With a quantized base, that on the model's own weights is compared.
        """
        exact = on_fp32_base(self.rewriter, self._options, self.lora)
        if exact is not self.rewriter:
            tell_quantization(self.rewriter, exact, batch, self.hparams.base_bits)
        return export_difference(exact.eval().cpu().float(), folder, batch, self._options, self.lora)


def refuse_base_of_adapters(pretrained: Path) -> None:
    """Refuse the base model of a serving folder with an adapter for each strategy.

    Such a base holds nothing that was trained.

    Raises:
        UserError: If it is one.
    """
    serving = pretrained.parent
    kind = read_json(serving / MANIFEST, CURE).get("kind") if (serving / MANIFEST).is_file() else None
    if kind == KIND and own_adapters(read_rewriter_manifest(serving, check_files=False)):
        raise UserError(
            f"{pretrained} is the base model of adapters for each strategy, without what they have learned: start from "
            "a rewriter with one shared adapter, which its folder has merged."
        )
