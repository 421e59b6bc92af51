"""What is trained: a trainer with its data, and the same model with the same loss in plain transformers.

Shape legend: P rows, T tokens, A answer tokens, B questions, N contexts per question, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
)

from benchmarks.gpu_day.models import Texts, save_causal, save_encoder, save_t5, write_rows
from benchmarks.gpu_day.sizes import BenchmarkSizes
from datamodules.dmqr import RewriteBatch, RewriteData, RewriteDataFile
from datamodules.drrag import DrRagData
from datamodules.examples.context_sets import ContextBatch
from datamodules.examples.data_files import QuestionDataFile
from datamodules.examples.triple_batches import TripleBatch
from datamodules.rerag import ReRagData
from models.length_batching import IGNORE
from trainers.dmqr import RewriterTrainer
from trainers.drrag import DrRagTrainer
from trainers.rerag import ReRagTrainer
from trainers.rerag_losses import estimator_loss, generation_loss, token_loss
from trainers.rerag_options import Text

HELD_OUT = 0.2


@dataclass
class TrainingCase:
    """A trainer beside transformers."""

    name: str
    module: pl.LightningModule
    data: pl.LightningDataModule
    ours: list[PreTrainedModel]
    plain: list[PreTrainedModel]  # in the same order
    tokens: Callable[[Any], list[tuple[int, int]]]  # of a batch: input and target tokens of each network, no padding
    prepare: Callable[[Any], Any]  # what a collator of transformers would have made of the batch's rows
    loss: Callable[[Any], Tensor]  # of what was prepared


def questions(sizes: BenchmarkSizes, each: int) -> int:
    """As many that all steps have new ones, if a step takes `each`."""
    return round((sizes.warm_up + sizes.steps + 1) * each / (1 - HELD_OUT)) + 10


def triples(folder: Path, sizes: BenchmarkSizes, device: torch.device) -> TrainingCase:
    """DR-RAG's classifier from BigBird-base: all weights; transformers computes its attention eagerly."""
    model = save_encoder(folder / "model", "big_bird", sizes, device, attention_type="original_full", num_labels=2)
    count = questions(sizes, round(sizes.triple_tokens / (8 * sizes.words)))  # four triples of two passages each
    file = write_rows(folder / "hotpot.json", Texts(sizes.words).hotpot(count))
    module = DrRagTrainer(model, max_tokens=512).load()
    data = DrRagData(
        [QuestionDataFile(file, "hotpotqa")], validation_fraction=HELD_OUT, tokens_per_step=sizes.triple_tokens,
        cache=None, workers=0,
    )  # fmt: skip
    plain = AutoModelForSequenceClassification.from_pretrained(model, attention_type="original_full")

    def loss(batch: TripleBatch) -> Tensor:
        labels_P = batch.labels_P.long()
        return plain(input_ids=batch.ids_PT, attention_mask=batch.attention_PT, labels=labels_P).loss

    return TrainingCase(
        "DR-RAG, BigBird-base, triples", module, data, [module.classifier.network], [plain],
        lambda batch: [(int(batch.attention_PT.sum()), 0)], lambda batch: batch, loss,
    )  # fmt: skip


def contexts(folder: Path, sizes: BenchmarkSizes, device: torch.device) -> TrainingCase:
    """RE-RAG's joint training of two T5-base; transformers pads all contexts of a step to the longest."""
    model = save_t5(folder / "model", sizes, device)
    count = questions(sizes, sizes.questions)
    file = write_rows(folder / "fid.json", Texts(sizes.words).fid(count, sizes.contexts))
    module = ReRagTrainer(model, model, preset="released", text=Text(max_answer_tokens=25)).load()
    data = ReRagData(
        [QuestionDataFile(file, "fid")], validation_fraction=HELD_OUT, contexts=sizes.contexts,
        questions_per_step=sizes.questions, cache=None, workers=0,
    )  # fmt: skip
    generator, estimator = (AutoModelForSeq2SeqLM.from_pretrained(model) for _ in range(2))
    trained = module.estimator

    def prepare(batch: ContextBatch) -> tuple[Tensor, Tensor, Tensor, ContextBatch]:
        rows = [each for bucket in batch.buckets for each in zip(bucket.ids_MT, bucket.attention_MT, strict=True)]
        ids_PT, attention_PT = (
            pad_sequence([each[place] for each in rows], batch_first=True, padding_value=0) for place in (0, 1)
        )
        return ids_PT, attention_PT, torch.cat([bucket.cells_M for bucket in batch.buckets]), batch

    def loss(prepared: tuple[Tensor, Tensor, Tensor, ContextBatch]) -> Tensor:
        ids_PT, attention_PT, cells_P, batch = prepared
        read = {"input_ids": ids_PT, "attention_mask": attention_PT}
        labels_PA = batch.answers_BA[cells_P // batch.real_BN.shape[1]]
        written = generator.prepare_decoder_input_ids_from_labels(labels_PA)
        logits_PAV = generator(**read, decoder_input_ids=written).logits.float()
        nll_PA = F.cross_entropy(logits_PAV.transpose(1, 2), labels_PA, ignore_index=IGNORE, reduction="none")
        start_P1 = torch.zeros_like(ids_PT[:, :1])
        logp_PV = estimator(**read, decoder_input_ids=start_P1).logits[:, 0].float().log_softmax(-1)
        true_P, false_P = logp_PV[:, trained.true_id], logp_PV[:, trained.false_id]

        def grid(values_P: Tensor) -> Tensor:
            return values_P.new_zeros(batch.real_BN.numel()).index_add(0, cells_P, values_P).view_as(batch.real_BN)

        relevance_BN, logp_BN = grid(true_P - false_P), grid(-nll_PA.sum(1))
        shared = relevance_BN, logp_BN, batch.real_BN
        form, direction = module.preset.gen_form, module.preset.kl_direction
        answers = generation_loss(*shared, form).sum() + estimator_loss(*shared, direction).sum()
        others = token_loss(grid(1 - true_P.exp() - false_P.exp()), batch.real_BN).sum()
        return answers / batch.step_questions + others / batch.step_pairs

    def tokens(batch: ContextBatch) -> list[tuple[int, int]]:
        read = sum(int(bucket.attention_MT.sum()) for bucket in batch.buckets)
        answers_B = (batch.answers_BA != IGNORE).sum(1)
        return [(read, int((answers_B * batch.real_BN.sum(1)).sum())), (read, int(batch.real_BN.sum()))]

    return TrainingCase(
        f"RE-RAG, two T5-base, {sizes.contexts} contexts", module, data, [part.network for part in module.parts],
        [generator, estimator], tokens, prepare, loss,
    )  # fmt: skip


def rewrites(folder: Path, sizes: BenchmarkSizes, device: torch.device) -> TrainingCase:
    """DMQR-RAG's rewriter: a causal LM of half a billion weights with LoRA; beside it transformers with peft."""
    model = save_causal(folder / "model", sizes, device)
    count = questions(sizes, sizes.rewrites)
    file = write_rows(folder / "rewrites.jsonl", Texts(sizes.words).rewrites(count), lines=True)
    module = RewriterTrainer(model, max_tokens=192).load()
    data = RewriteData(
        [RewriteDataFile(file, "rewrites")], validation_fraction=HELD_OUT, rewrites_per_step=sizes.rewrites
    )
    adapter = LoraConfig(task_type="CAUSAL_LM", r=16, lora_alpha=32, lora_dropout=0.05, target_modules="all-linear")
    plain = get_peft_model(AutoModelForCausalLM.from_pretrained(model), adapter)

    def prepare(batch: RewriteBatch) -> dict[str, Tensor]:
        labels_PT = torch.full_like(batch.ids_PT, IGNORE)
        labels_PT[:, -batch.labels_PA.shape[1] :] = batch.labels_PA
        return {"input_ids": batch.ids_PT, "attention_mask": batch.attention_PT, "labels": labels_PT}

    return TrainingCase(
        "DMQR-RAG, causal LM of 0.5 B with LoRA", module, data, [module.rewriter.network], [plain.get_base_model()],
        lambda batch: [(int(batch.attention_PT.sum()), int((batch.labels_PA != IGNORE).sum()))], prepare,
        lambda prepared: plain(**prepared).loss,
    )  # fmt: skip


CASES = {"triples": triples, "contexts": contexts, "rewrites": rewrites}
