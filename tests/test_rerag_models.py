"""RE-RAG's parts against plain transformers: formats, estimator, generator, marginalisation, calibration, serving."""

import itertools
import json
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import processors
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    T5Tokenizer,
)

import models.marginal
from datamodules.errors import ArtifactError, MissingInputError, UserError
from datamodules.records import Passage, clean
from models.calibration import Calibration
from models.contexts import ContextEncoder, ContextFormat, text_format
from models.generator import IGNORE, Generator
from models.lengths import pad
from models.marginal import MarginalReader, weigh
from models.relevance import RelevanceEstimator, single_token
from models.rerag import ESTIMATOR, GENERATOR, ReRagModel
from tests.conftest import NAMES, SENTINELS, save_t5, save_t5_tokenizer, save_tokenizer

QUESTION = "where was name1 born"
HAMLET = Passage.of("name1", "name1 was born in the city .")
LONDON = Passage.of("name2", "the director of name2 is name3 . " * 3)
CROWD = [
    Passage.of(name, f"{name} was born in {NAMES[-i]} . " + "the film . " * (i % 5)) for i, name in enumerate(NAMES)
]
PAIRS = [(f"where was {NAMES[i % 7]} born", passage) for i, passage in enumerate(CROWD[:12])]
T5_FORMATS: list[ContextFormat] = ["re_rag_train", "re_rag_release", "fid", "packed"]


def t5_encoder(checkpoints: dict[str, Path], format: ContextFormat = "fid", max_tokens: int = 64) -> ContextEncoder:
    return ContextEncoder(AutoTokenizer.from_pretrained(checkpoints["t5"]), max_tokens, format)


def estimator(checkpoints: dict[str, Path], family: str = "t5", max_tokens: int = 64) -> RelevanceEstimator:
    torch.manual_seed(3)  # the head of an encoder-only model is new
    return RelevanceEstimator.build(str(checkpoints[family]), max_tokens).eval()


def generator(checkpoints: dict[str, Path], prefix: str = "", max_tokens: int = 64) -> Generator:
    return Generator.build(str(checkpoints["t5"]), max_tokens, answer_prefix=prefix).eval()


# --- formats


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("re_rag_train", "question: where iscontext: name1.name2 was no"),
        ("re_rag_release", "question: where iscontext: name1. name2 was no"),
        ("fid", "question: where is title: name1 context: name2 was no"),
        ("packed", "question: where is document 1: name1. name2 was no"),
    ],
)
def test_the_string_of_every_format(checkpoints: dict[str, Path], format: ContextFormat, text: str) -> None:
    encode = t5_encoder(checkpoints, format)
    (ids,) = encode([(" where\n is ", [Passage("p", "name2  was no", "name1")])])
    expected = text.replace(" iscontext", " iscontext" if format == "re_rag_train" else " is context")
    if format == "re_rag_release":
        expected = text  # the released example joins them as well
    assert ids == encode.tokenizer(expected)["input_ids"]
    assert ids[-1] == encode.tokenizer.eos_token_id


def test_packed_documents_are_numbered_in_order(checkpoints: dict[str, Path]) -> None:
    encode = t5_encoder(checkpoints, "packed")
    (ids,) = encode([("who", [HAMLET, Passage.of("", "no"), LONDON])])
    text = f"question: who document 1: name1. {HAMLET.text} document 2: no document 3: name2. {LONDON.text}"
    assert ids == encode.tokenizer(text)["input_ids"]
    assert encode([("who", [])]) == [encode.tokenizer("question: who")["input_ids"]]


def test_a_pair_for_encoders_is_what_the_tokenizer_joins(checkpoints: dict[str, Path]) -> None:
    encode = estimator(checkpoints, "bert").encode
    assert encode.format == "sentence_pair"
    words = encode.tokenizer.convert_ids_to_tokens(encode([("who is", [HAMLET])])[0])
    assert " ".join(words) == "[CLS] who is [SEP] name1 . name1 was born in the city . [SEP]"
    words = encode.tokenizer.convert_ids_to_tokens(encode([("who is", [Passage.of("", "no")])])[0])
    assert " ".join(words) == "[CLS] who is [SEP] no [SEP]"


@pytest.mark.parametrize("format", T5_FORMATS)
def test_t5_formats_truncate_the_passage_never_the_question(
    checkpoints: dict[str, Path], format: ContextFormat
) -> None:
    encode = t5_encoder(checkpoints, format, max_tokens=18)
    (ids,) = encode([(QUESTION, [LONDON])])
    assert len(ids) == 18
    whole = encode.tokenizer(f"question: {QUESTION}", add_special_tokens=False)["input_ids"]
    if not format.startswith("re_rag"):  # there the question's last word is glued to `context`
        assert ids[: len(whole)] == whole
    assert ids[: len(whole) - 1] == whole[:-1]
    assert ids[-1] == encode.tokenizer.eos_token_id
    (longer,) = t5_encoder(checkpoints, format, max_tokens=200)([(QUESTION, [LONDON])])
    assert ids[:-1] == longer[:17]


def test_sentence_pairs_truncate_the_passage_never_the_question(checkpoints: dict[str, Path]) -> None:
    encode = estimator(checkpoints, "bert", 16).encode
    (ids,) = encode([(QUESTION, [LONDON])])
    assert len(ids) == 16
    assert encode.tokenizer.decode(ids).startswith(f"[CLS] {QUESTION} [SEP] name2 . the")
    assert ids[-1] == encode.tokenizer.sep_token_id


@pytest.mark.parametrize("format", T5_FORMATS)
@pytest.mark.parametrize("question", ["is " * 40, ". . . . . . .", "............", "是" * 12])
def test_a_question_that_leaves_no_room_is_refused(
    checkpoints: dict[str, Path], format: ContextFormat, question: str
) -> None:
    encode = t5_encoder(checkpoints, format, 16)
    tokens = len(encode.tokenizer(f"question: {clean(question)}")["input_ids"])
    if tokens <= 12:
        assert len(encode([(question, [LONDON])])[0]) <= 16
    else:
        with pytest.raises(UserError, match=rf"the question .* fills {tokens} of max_tokens 16: raise it"):
            encode([(question, [LONDON])])


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(20, 90))
@settings(max_examples=30, deadline=None)
def test_packed_documents_share_the_room(words: list[int], max_tokens: int) -> None:
    encode = ContextEncoder(_TOKENIZERS["t5"], max_tokens, "packed")
    passages = [Passage.of("", " ".join(["the"] * n)) for n in words]
    (ids,) = encode([("who", passages)])
    lengths = [n + 3 for n in words]  # document, its number, a colon
    head = 3  # question, colon, who
    assert len(ids) == min(max_tokens, head + sum(lengths) + 1)
    document = encode.tokenizer.convert_tokens_to_ids("document")
    starts = [i for i, token in enumerate(ids) if token == document] + [len(ids) - 1]
    kept = [b - a for a, b in itertools.pairwise(starts)]
    assert len(kept) == len(words)  # none is pushed out
    cut = [part for part, length in zip(kept, lengths, strict=True) if part < length]
    assert not cut or max(kept) - min(cut) <= 1


_TOKENIZERS = {}


@pytest.fixture(autouse=True)
def _tokenizers(checkpoints: dict[str, Path]) -> None:
    if not _TOKENIZERS:
        _TOKENIZERS.update({name: AutoTokenizer.from_pretrained(checkpoints[name]) for name in ("t5", "bert")})


@pytest.mark.parametrize("format", [*T5_FORMATS, "sentence_pair"])
@given(
    noise=st.text(alphabet="[]SEPCLAD <>/spadunkextra_id0", max_size=30),
    specials=st.lists(st.sampled_from(["</s>", "<pad>", "<unk>", *SENTINELS, "[SEP]", "[CLS]", "[PAD]"]), max_size=4),
)
@settings(max_examples=30, deadline=None)
def test_no_user_text_becomes_a_special_token(format: ContextFormat, noise: str, specials: list[str]) -> None:
    tokenizer = _TOKENIZERS["bert" if format == "sentence_pair" else "t5"]
    text = "".join([noise[:10], *specials, noise[10:]])
    (ids,) = ContextEncoder(tokenizer, 200, format)([(text, [Passage("p", text, text)])])
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    framed = {"sentence_pair": [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.sep_token_id]}
    assert [token for token in ids if token in special] == framed.get(format, [tokenizer.eos_token_id])


def test_remembered_sequences_equal_fresh_ones(checkpoints: dict[str, Path]) -> None:
    rows = [(question, [passage]) for question, passage in PAIRS]
    fresh = [t5_encoder(checkpoints)([row])[0] for row in rows]
    encode = t5_encoder(checkpoints)
    encode.cached_texts = 5
    for start, end in ((0, 3), (1, 4), (3, 5), (4, 12), (0, 12)):  # within, across and beyond what is remembered
        assert encode([*rows[start:end], rows[start]]) == [*fresh[start:end], fresh[start]]
    assert encode([("where", [CROWD[0]])]) != encode([("who", [CROWD[0]])])
    packed = t5_encoder(checkpoints, "packed")
    assert packed([("who", [HAMLET, LONDON])]) != packed([("who", [LONDON, HAMLET])])
    assert encode([]) == packed([]) == []


def test_the_same_encoder_is_recognised(checkpoints: dict[str, Path]) -> None:
    one = t5_encoder(checkpoints)
    assert one.same_as(t5_encoder(checkpoints))
    assert not one.same_as(t5_encoder(checkpoints, max_tokens=65))
    assert not one.same_as(t5_encoder(checkpoints, "packed"))


def test_misfits_are_refused(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="text_format 'monot5' is unknown; allowed: re_rag_train"):
        t5_encoder(checkpoints, "monot5")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="sentence_pair does not fit"):
        t5_encoder(checkpoints, "sentence_pair")
    with pytest.raises(UserError, match="fid does not fit"):
        ContextEncoder(_TOKENIZERS["bert"], 64, "fid")
    with pytest.raises(UserError, match="at least 16"):
        t5_encoder(checkpoints, max_tokens=15)
    for encode in (t5_encoder(checkpoints), estimator(checkpoints, "bert").encode):
        with pytest.raises(ValueError, match="unpack"):
            encode([("who", [HAMLET, LONDON])])
    save_t5_tokenizer(tmp_path)
    endless = AutoTokenizer.from_pretrained(tmp_path)
    endless.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B")
    with pytest.raises(UserError, match="does not end a text with </s>"):
        ContextEncoder(endless)


def test_the_format_string_names_format_and_version() -> None:
    assert text_format("fid") == "fid; nfkc, single blanks; v1"


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=40), min_size=1, max_size=5), st.integers(40, 60))
def test_padding(sequences: list[list[int]], max_tokens: int) -> None:
    ids, attention = pad(sequences, 0, max_tokens)
    longest = max(map(len, sequences))
    assert ids.shape == attention.shape == (len(sequences), ids.shape[1])
    assert longest <= ids.shape[1] <= min(max_tokens, longest + 7)
    assert ids.shape[1] % 8 == 0 or ids.shape[1] == max_tokens
    for sequence, row, real in zip(sequences, ids.tolist(), attention.tolist(), strict=True):
        assert row == sequence + [0] * (len(row) - len(sequence))
        assert real == [1] * len(sequence) + [0] * (len(row) - len(sequence))
    assert pad(sequences, 0, max_tokens, length=64)[0].shape[1] == 64


# --- the estimator


def test_t5_scores_are_logit_differences_of_plain_transformers(checkpoints: dict[str, Path]) -> None:
    re = estimator(checkpoints)
    plain = AutoModelForSeq2SeqLM.from_pretrained(checkpoints["t5"]).eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoints["t5"])
    scores = re.scores(PAIRS, tokens_per_batch=100)
    for (question, passage), score in zip(PAIRS, scores, strict=True):
        text = f"question: {question} title: {passage.title} context: {passage.text}"
        batch, labels = tokenizer([text], return_tensors="pt"), tokenizer(["true"], return_tensors="pt").input_ids
        with torch.inference_mode():
            logits = plain(**batch, labels=labels).logits[0, 0].double()
            ids, attention = batch["input_ids"], batch["attention_mask"]
            relevance = re(ids, attention)
        true, false = (tokenizer.convert_tokens_to_ids(word) for word in ("true", "false"))
        assert score == pytest.approx((logits[true] - logits[false]).item(), abs=1e-5)
        assert relevance.score_P.dtype == torch.float32
        p = logits.softmax(0)
        assert relevance.other_mass_P.item() == pytest.approx(1 - p[true].item() - p[false].item(), abs=1e-6)


def test_a_small_other_mass_keeps_its_digits(checkpoints: dict[str, Path]) -> None:
    """A trained estimator says almost nothing else: 1 - P(true) - P(false) in fp32 would be rounding, even negative."""
    re = estimator(checkpoints)
    ids, attention = re.encode.pad(re.encode([(QUESTION, [HAMLET])]))
    with torch.no_grad():
        inputs = {"input_ids": ids, "attention_mask": attention, "decoder_input_ids": torch.zeros(1, 1).long()}
        direction = re.network(**inputs, output_hidden_states=True).decoder_hidden_states[-1][0, 0]
        re.network.lm_head.weight[[re.true_id, re.false_id]] += 20 * direction / direction.norm()
        logits = re.network(**inputs).logits[0, 0].double()
    others = torch.ones(len(logits), dtype=torch.bool)
    others[[re.true_id, re.false_id]] = False
    expected = logits.softmax(0)[others].sum().item()
    assert expected < 1e-5
    mass = re(ids, attention).other_mass_P
    assert mass.item() == pytest.approx(expected, rel=1e-3)
    mass.sum().backward()
    assert all(p.grad.isfinite().all() for p in re.parameters() if p.grad is not None)


def test_logits_are_fp32_under_autocast(checkpoints: dict[str, Path]) -> None:
    """Rounded to bf16, logits of this size are multiples of 1/16 and alike contexts tie."""
    re = estimator(checkpoints)
    states = []
    re.network.decoder.register_forward_hook(lambda _module, _args, output: states.append(output[0][:, 0]))
    with torch.inference_mode():
        re.network.lm_head.weight[[re.true_id, re.false_id]] *= 16
        with torch.autocast("cpu", dtype=torch.bfloat16):
            relevance = re(*re.encode.pad(re.encode([(question, [passage]) for question, passage in PAIRS])))
        logits = states[0].double() @ re.network.lm_head.weight.double().T / math.sqrt(32)
        assert logits.abs().max() > 8
        expected = logits[:, re.true_id] - logits[:, re.false_id]
    assert relevance.score_P.dtype == torch.float32
    torch.testing.assert_close(relevance.score_P.double(), expected, atol=5e-3, rtol=0)


@pytest.mark.parametrize("family", ["t5", "bert", "big_bird", "roberta"])
def test_scores_depend_on_neither_company_nor_padding_nor_batches(checkpoints: dict[str, Path], family: str) -> None:
    re = estimator(checkpoints, family)
    scores = re.scores(PAIRS)
    assert len(set(scores)) == len(scores)
    assert [re.scores([pair])[0] for pair in PAIRS] == pytest.approx(scores, abs=1e-5)
    assert re.scores(PAIRS[::-1], tokens_per_batch=1)[::-1] == pytest.approx(scores, abs=1e-5)
    ids, attention = pad(re.encode([(q, [p]) for q, p in PAIRS]), re.encode.tokenizer.pad_token_id, 64, 64)
    assert re(ids, attention).score_P.tolist() == pytest.approx(scores, abs=1e-5)
    assert re.scores([]) == []


def test_an_encoder_with_one_label_scores_as_plain_transformers(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    re = estimator(checkpoints, "bert")
    re.save(tmp_path)
    plain, tokenizer = (kind.from_pretrained(tmp_path) for kind in (AutoModelForSequenceClassification, AutoTokenizer))
    assert plain.config.num_labels == 1
    batch = tokenizer(
        [QUESTION] * 2, [f"{p.title}. {p.text}" for p in (HAMLET, LONDON)], padding=True, return_tensors="pt"
    )
    assert batch["token_type_ids"].sum() > 0  # the passage is the second segment, as every BERT cross-encoder has it
    expected = plain(**batch).logits[:, 0].tolist()
    assert re.scores([(QUESTION, HAMLET), (QUESTION, LONDON)]) == pytest.approx(expected, abs=1e-5)
    assert re(*re.encode.pad(re.encode([(QUESTION, [HAMLET])]))).other_mass_P is None


def save_labelled_bert(folder: Path, labels: int) -> None:
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(
        vocab_size=save_tokenizer(folder, segments=True), num_labels=labels, max_position_embeddings=64, **sizes
    )
    BertForSequenceClassification(config).save_pretrained(folder)


def test_two_labels_give_a_logit_difference_and_three_are_refused(tmp_path: Path) -> None:
    save_labelled_bert(tmp_path, 2)
    re = RelevanceEstimator.build(str(tmp_path), 64).eval()
    ids, attention = re.encode.pad(re.encode([(QUESTION, [HAMLET])]))
    first, second = re.network(
        input_ids=ids, attention_mask=attention, token_type_ids=re._segments(ids, attention)
    ).logits[0]
    assert re.scores([(QUESTION, HAMLET)])[0] == pytest.approx((second - first).item(), abs=1e-6)
    with pytest.raises(UserError, match="max_tokens 65 is beyond the 64 positions"):
        RelevanceEstimator.build(str(tmp_path), 65)
    save_labelled_bert(tmp_path, 3)
    with pytest.raises(UserError, match="classifies into 3 labels"):
        RelevanceEstimator.build(str(tmp_path), 64)


def test_label_tokens_must_be_single(tmp_path: Path) -> None:
    save_t5(tmp_path / "t5")
    save_t5_tokenizer(tmp_path / "t5", ("true", "xalse"))
    with pytest.raises(UserError, match=r"'false' must be one token .* but is 1: \[2\]"):  # unknown
        RelevanceEstimator.build(str(tmp_path / "t5"))
    with pytest.raises(UserError, match=r"must be one token .* but is 2"):
        single_token(_TOKENIZERS["t5"], "true false")


def test_models_are_trained_in_fp32_whatever_they_were_saved_in(tmp_path: Path) -> None:
    save_t5(tmp_path / "t5")
    AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "t5").to(torch.bfloat16).save_pretrained(tmp_path / "t5")
    for model in (RelevanceEstimator.build(str(tmp_path / "t5")), Generator.build(str(tmp_path / "t5"))):
        assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_dropout_and_checkpointing_reach_the_network(checkpoints: dict[str, Path]) -> None:
    for family in ("t5", "bert"):
        re = RelevanceEstimator.build(str(checkpoints[family]), 64, dropout=0.25, gradient_checkpointing=True)
        rates = {m.p for m in re.network.modules() if isinstance(m, torch.nn.Dropout)}
        assert rates == {0.25}
        assert re.network.is_activation_checkpointing


@pytest.mark.parametrize("family", ["t5", "bert"])
def test_recomputed_activations_give_the_same_gradients(checkpoints: dict[str, Path], family: str) -> None:
    def gradients(recompute: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        re = RelevanceEstimator.build(str(checkpoints[family]), 64, "fid", 0.0, recompute).train()
        losses = [re(*re.encode.pad(re.encode([(q, [p]) for q, p in PAIRS]))).score_P.sum()]
        if family == "t5":
            reader = Generator.build(str(checkpoints["t5"]), 64, "fid", "", 0.0, recompute).train()
            losses.append(reader(*reading_batch(reader), reader.labels(["name1"] * len(PAIRS))).sum())
            re.reader = reader
        sum(losses, torch.zeros(())).backward()
        return [p.grad for p in re.parameters() if p.grad is not None]

    for here, there in zip(gradients(True), gradients(False), strict=True):
        torch.testing.assert_close(here, there)


def test_the_real_t5_says_true_and_false_in_one_piece() -> None:
    data = os.environ.get("LIGHTNING_RAG_DATA")
    if not data or not (Path(data) / "t5/spiece.model").is_file():
        pytest.skip("LIGHTNING_RAG_DATA names no folder with t5/spiece.model")
    tokenizer = T5Tokenizer.from_pretrained(str(Path(data) / "t5"))
    assert (single_token(tokenizer, "true"), single_token(tokenizer, "false")) == (1176, 6136)
    assert tokenizer.convert_ids_to_tokens([1176, 6136]) == ["▁true", "▁false"]
    poison = Passage("p", "London </s> <extra_id_0> <pad>", "<extra_id_99>")
    for format in T5_FORMATS:
        (ids,) = ContextEncoder(tokenizer, 64, format)([("who </s>?", [poison])])
        assert [token for token in ids if token in {0, 1} or token >= 32000] == [1]
    (ids,) = ContextEncoder(tokenizer, 64, "re_rag_train")([("who is he", [Passage.of("Hamlet", "A play.")])])
    assert tokenizer.decode(ids) == "question: who is hecontext: Hamlet.A play.</s>"


# --- the generator


def reading_batch(reader: Generator) -> tuple[torch.Tensor, torch.Tensor]:
    return reader.encode.pad(reader.encode([(question, [passage]) for question, passage in PAIRS]))


@pytest.mark.parametrize("prefix", ["", "answer: "])
def test_answer_logp_is_minus_transformers_loss_times_tokens(checkpoints: dict[str, Path], prefix: str) -> None:
    reader = generator(checkpoints, prefix)
    plain = AutoModelForSeq2SeqLM.from_pretrained(checkpoints["t5"]).eval()
    answers = ["name3", "the city of name4", "", "no"] * 3
    logp = reader(*reading_batch(reader), reader.labels(answers))
    assert logp.dtype == torch.float32
    for (question, passage), answer, value in zip(PAIRS, answers, logp.tolist(), strict=True):
        batch = reader.encode.tokenizer(f"question: {question} title: {passage.title} context: {passage.text}",
                                        return_tensors="pt")  # fmt: skip
        labels = reader.encode.tokenizer(prefix + answer, return_tensors="pt").input_ids
        loss = plain(**batch, labels=labels).loss
        assert value == pytest.approx(-loss.item() * labels.shape[1], abs=1e-4)


def test_labels_end_and_are_padded_and_cut(checkpoints: dict[str, Path]) -> None:
    reader = generator(checkpoints, "answer: ")
    labels = reader.labels(["name1", " name2\n name3 "])
    ids = reader.encode.tokenizer.convert_tokens_to_ids
    expected = [[*ids(["answer", ":", "name1"]), 1, IGNORE], [*ids(["answer", ":", "name2", "name3"]), 1]]
    assert labels.tolist() == expected
    assert reader.labels(["name1", "name2 name3"], max_tokens=4).tolist() == [expected[0][:4], [*expected[1][:3], 1]]


def test_reused_states_are_exact(checkpoints: dict[str, Path]) -> None:
    reader = generator(checkpoints)
    ids, attention = reading_batch(reader)
    encoded, rows = reader.encode_contexts(ids, attention), torch.tensor([3, 0, 0, 7])
    labels = reader.labels(["name1", "no", "name1 name2", "yes"])
    with torch.inference_mode():
        assert torch.equal(reader.answer_logp(encoded.rows(rows), labels), reader(ids[rows], attention[rows], labels))


@pytest.mark.parametrize("tokens", [1, 6])
def test_writing_is_greedy_generation(checkpoints: dict[str, Path], tokens: int) -> None:
    reader = generator(checkpoints)
    plain = AutoModelForSeq2SeqLM.from_pretrained(checkpoints["t5"]).eval()
    ids, attention = reading_batch(reader)
    expected = plain.generate(input_ids=ids, attention_mask=attention, max_new_tokens=tokens, do_sample=False)
    texts = reader.encode.tokenizer.batch_decode(expected, skip_special_tokens=True)
    written = reader.write(reader.encode_contexts(ids, attention), tokens)
    assert written == [text.strip() for text in texts]
    assert len(set(written)) > 1


def test_the_answer_prefix_is_taken_off(checkpoints: dict[str, Path]) -> None:
    plain = generator(checkpoints)
    written = plain.write(plain.encode_contexts(*reading_batch(plain)), 4)
    first = next(text.split()[0] for text in written if text)
    prefixed = generator(checkpoints, f"{first} ")
    expected = [text.removeprefix(first).strip() for text in written]
    assert expected != written
    assert prefixed.write(prefixed.encode_contexts(*reading_batch(prefixed)), 4) == expected


def test_the_whole_step_trains_every_parameter_of_both(checkpoints: dict[str, Path]) -> None:
    reader, re = generator(checkpoints), estimator(checkpoints)
    relevance = re(*reading_batch(reader))
    (reader(*reading_batch(reader), reader.labels(["name1"] * len(PAIRS))).sum() + relevance.score_P.sum()).backward()
    for part in (reader, re):
        assert all(p.grad is not None and p.grad.isfinite().all() for p in part.parameters())


def test_answers_are_those_written_one_by_one(checkpoints: dict[str, Path]) -> None:
    reader = generator(checkpoints)
    rows = [(question, [passage]) for question, passage in PAIRS]
    answers = reader.answers(rows, 6, tokens_per_batch=90)
    for row, (text, logp) in zip(rows, answers, strict=True):
        encoded = reader.encode_contexts(*reader.encode.pad(reader.encode([row])))
        assert [text] == reader.write(encoded, 6)
        assert logp == pytest.approx(reader.answer_logp(encoded, reader.labels([text])).item(), abs=1e-4)
    assert len({text for text, _ in answers}) > 1
    assert reader.answers([]) == []


def test_an_encoder_only_generator_is_refused(checkpoints: dict[str, Path]) -> None:
    with pytest.raises(UserError, match="is a 'bert': name a T5-family model"):
        Generator.build(str(checkpoints["bert"]))


# --- marginalisation

SETS = [CROWD[:4], [], CROWD[4:5], CROWD[5:13], CROWD[13:15]]
QUESTIONS = [f"where was {name} born" for name in NAMES[: len(SETS)]]
SCORES = [[0.3 * (-1) ** i * i for i, _ in enumerate(passages)] for passages in SETS]


def brute_reading(
    folder: Path, question: str, passages: list[Passage], scores: list[float], kind: str
) -> dict[str, list]:
    """Joint probabilities P_RE(c) P_G(a | q, c), or of `fast` P_RE(c) where c wrote a, per candidate and context."""
    plain, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    prior = [math.exp(s) / sum(math.exp(t) for t in scores) for s in scores]
    inputs = [
        tokenizer(f"question: {question} title: {p.title} context: {p.text}", return_tensors="pt") for p in passages
    ]
    written = [
        tokenizer.decode(plain.generate(**x, max_new_tokens=5, do_sample=False)[0], skip_special_tokens=True)
        for x in inputs
    ]
    joint: dict[str, list] = {}
    for text in dict.fromkeys(written):
        labels = tokenizer(text, return_tensors="pt").input_ids
        if kind == "fast":
            joint[text] = [p * (text == own) for p, own in zip(prior, written, strict=True)]
        else:
            losses = [plain(**x, labels=labels).loss.item() for x in inputs]
            joint[text] = [p * math.exp(-n * labels.shape[1]) for p, n in zip(prior, losses, strict=True)]
    return joint


@pytest.mark.parametrize("kind", ["thorough", "fast"])
def test_marginals_equal_brute_force(checkpoints: dict[str, Path], kind: models.marginal.Marginal) -> None:
    reader = MarginalReader(generator(checkpoints), kind, max_answer_tokens=5, tokens_per_batch=100)
    readings = reader.read(QUESTIONS, SETS, SCORES)
    most = 0
    for question, passages, scores, reading in zip(QUESTIONS, SETS, SCORES, readings, strict=True):
        if not passages:
            assert (reading.text, reading.logprob, reading.shares, reading.written) == ("", 0.0, (), ())
            continue
        joint = brute_reading(checkpoints["t5"], question, passages, scores, kind)
        most = max(most, len(joint))
        totals = {text: math.log(sum(parts)) for text, parts in joint.items()}
        assert reading.candidates == pytest.approx(totals, abs=1e-4)
        assert reading.text == max(totals, key=totals.__getitem__)
        assert reading.logprob == reading.candidates[reading.text]
        shares = [part / sum(joint[reading.text]) for part in joint[reading.text]]
        assert reading.shares == pytest.approx(shares, abs=1e-4)
        assert sum(reading.shares) == pytest.approx(1, abs=1e-5)
        assert set(reading.written) == set(joint)
    assert most > 1  # several candidates competed


@pytest.mark.parametrize("kind", ["thorough", "fast"])
def test_neither_batches_nor_groups_nor_company_change_a_reading(
    checkpoints: dict[str, Path], kind: models.marginal.Marginal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(budget: int | None, group: int, several: bool = True) -> list[models.marginal.Reading]:
        monkeypatch.setattr(models.marginal, "TOKENS_PER_GROUP", group)
        reader = MarginalReader(generator(checkpoints), kind, 5, budget)
        if several:
            return reader.read(QUESTIONS, SETS, SCORES)
        rows = zip(QUESTIONS, SETS, SCORES, strict=True)
        return [reading for q, c, s in rows for reading in reader.read([q], [c], [s])]

    expected = read(None, 10**6)
    for other in (read(1, 10**6), read(90, 1), read(None, 60), read(90, 10**6, several=False)):
        for here, there in zip(other, expected, strict=True):
            assert (here.text, here.written) == (there.text, there.written)
            assert here.candidates == pytest.approx(there.candidates, abs=1e-4)
            assert here.shares == pytest.approx(there.shares, abs=1e-5)


def test_the_order_of_contexts_changes_only_the_order_of_shares(checkpoints: dict[str, Path]) -> None:
    reader = MarginalReader(generator(checkpoints), max_answer_tokens=5)
    order = [3, 0, 2, 1]
    (plain,) = reader.read(QUESTIONS[:1], SETS[:1], SCORES[:1])
    (turned,) = reader.read(QUESTIONS[:1], [[SETS[0][i] for i in order]], [[SCORES[0][i] for i in order]])
    assert turned.text == plain.text
    assert turned.candidates == pytest.approx(plain.candidates, abs=1e-4)
    assert turned.shares == pytest.approx([plain.shares[i] for i in order], abs=1e-5)


@pytest.mark.parametrize("kind", ["thorough", "fast"])
@pytest.mark.parametrize("chosen", [[2, 0], [1], [3, 1, 2], [0, 1, 2, 3, 4, 5, 6, 7]])
def test_a_subset_is_read_as_if_it_were_all(
    checkpoints: dict[str, Path], kind: models.marginal.Marginal, chosen: list[int]
) -> None:
    reader = MarginalReader(generator(checkpoints), kind, max_answer_tokens=5)
    question, passages, scores = QUESTIONS[3], SETS[3], SCORES[3]
    (matrix,) = reader.matrices([question], [passages])
    here = weigh(matrix.subset(chosen), torch.tensor([scores[i] for i in chosen]))
    (there,) = reader.read([question], [[passages[i] for i in chosen]], [[scores[i] for i in chosen]])
    assert (here.text, here.written) == (there.text, there.written)
    assert here.candidates == pytest.approx(there.candidates, abs=1e-4)
    assert list(here.candidates) == list(there.candidates)
    assert here.shares == pytest.approx(there.shares, abs=1e-5)


def test_no_context_is_encoded_twice(checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    reading = generator(checkpoints)
    seen = []
    encoder = reading.network.get_encoder()
    encoder.register_forward_hook(
        lambda _module, _args, kwargs, _out: seen.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    MarginalReader(reading, "thorough", 5, 100).read(QUESTIONS, SETS, SCORES)
    assert sum(seen) == sum(map(len, SETS))


# --- calibration


def platt_loss(scale: float, offset: float, scores: np.ndarray, labels: np.ndarray) -> float:
    positive, negative = labels.sum(), (~labels).sum()
    target = np.where(labels, (positive + 1) / (positive + 2), 1 / (negative + 2))
    logits = scale * scores + offset
    return float((np.logaddexp(0, logits) - target * logits).sum())


samples = st.lists(st.tuples(st.floats(-20, 20), st.booleans()), min_size=2, max_size=30).filter(
    lambda rows: len({label for _, label in rows}) == 2
)


@given(samples)
@settings(max_examples=60, deadline=None)
def test_calibration_beats_every_point_of_a_grid(rows: list[tuple[float, bool]]) -> None:
    scores, labels = np.array([s for s, _ in rows]), np.array([y for _, y in rows])
    fitted = Calibration.fit(scores, labels)
    assert fitted.scale > 0
    best = platt_loss(fitted.scale, fitted.offset, scores, labels)
    for scale in [1e-6, *np.geomspace(1e-3, 10, 25), *(fitted.scale * np.array([0.9, 0.99, 1.01, 1.1]))]:
        if scale < 1e-6:
            continue
        for shift in (-2, -0.5, -0.1, -0.01, 0, 0.01, 0.1, 0.5, 2):
            offset = fitted.offset + shift + (fitted.scale - scale) * scores.mean()
            assert best <= platt_loss(scale, offset, scores, labels) + 1e-6 * len(rows)


@given(samples, st.floats(0.01, 100), st.floats(-50, 50))
@settings(max_examples=30, deadline=None)
def test_calibrated_probabilities_do_not_depend_on_the_scores_unit(
    rows: list[tuple[float, bool]], unit: float, shift: float
) -> None:
    scores, labels = np.round([s for s, _ in rows], 2), [y for _, y in rows]
    one, other = Calibration.fit(scores, labels), Calibration.fit(scores * unit + shift, labels)
    if one.scale > 1e-4 and other.scale > 1e-4:
        for score in scores:
            assert other(score * unit + shift) == pytest.approx(one(score), abs=1e-4)


def test_calibration_by_hand() -> None:
    # Two scores, one label each: separable, so p(1) = 2/3 and p(0) = 1/3, Platt's targets: logits ±ln 2.
    fitted = Calibration.fit([0.0, 1.0], [False, True])
    assert fitted.scale == pytest.approx(2 * math.log(2), rel=1e-6)
    assert fitted.offset == pytest.approx(-math.log(2), rel=1e-6)
    assert fitted(1) == pytest.approx(2 / 3)
    assert Calibration()(-800.0) == 0
    assert Calibration()(800.0) == 1


@pytest.mark.parametrize("scores", [[0.1] * 7, [-3e8] * 7, [0.0] * 7])
def test_constant_scores_give_the_base_rate(scores: list[float]) -> None:
    fitted = Calibration.fit(scores, [True] * 2 + [False] * 5)
    base = (2 * 3 / 4 + 5 * 1 / 7) / 7  # Platt's targets, averaged
    assert 0 < fitted.scale < 1e-5
    assert fitted(scores[0]) == pytest.approx(base, abs=1e-6)


def test_scores_that_say_the_opposite_give_the_base_rate() -> None:
    fitted = Calibration.fit([5, 5, 5, -5], [False, False, False, True])
    base = (2 / 3 + 3 * 1 / 5) / 4
    assert fitted.scale == pytest.approx(1e-6)
    assert [fitted(5), fitted(-5)] == pytest.approx([base, base], abs=1e-4)


def test_calibration_refuses_what_it_cannot_fit() -> None:
    with pytest.raises(ValueError, match="with and without an answer"):
        Calibration.fit([1, 2], [True, True])
    with pytest.raises(ValueError, match="as many scores as labels"):
        Calibration.fit([1, 2], [True])
    with pytest.raises(ValueError, match="finite"):
        Calibration.fit([1, math.nan], [True, False])


# --- the serving folder


@pytest.fixture
def saved(checkpoints: dict[str, Path], tmp_path: Path) -> tuple[ReRagModel, Path]:
    reader = Generator.build(str(checkpoints["t5"]), 48, "packed", answer_prefix="answer: ").eval()
    model = ReRagModel(estimator(checkpoints), reader, Calibration(1.5, -0.25), 0.7, 6, relevance_temperature=0.5)
    model.save(tmp_path / "serving", metrics={"em": 0.5})
    return model, tmp_path / "serving"


def test_a_served_model_scores_and_answers_as_the_one_saved(saved: tuple[ReRagModel, Path]) -> None:
    model, folder = saved
    served = ReRagModel.load(folder, "cpu", needs=(ESTIMATOR, GENERATOR))
    assert served.estimator is not None
    assert served.generator is not None
    assert model.estimator is not None
    assert model.generator is not None
    assert served.estimator.scores(PAIRS) == pytest.approx(model.estimator.scores(PAIRS), abs=1e-6)
    assert (served.calibration, served.refusal_threshold) == (Calibration(1.5, -0.25), 0.7)
    assert (served.max_answer_tokens, served.relevance_temperature) == (6, 0.5)
    assert served.generator.answer_prefix == "answer: "
    assert served.estimator.encode.same_as(model.estimator.encode)
    assert served.generator.encode.same_as(model.generator.encode)
    assert not served.estimator.encode.same_as(served.generator.encode)
    assert not served.generator.network.training

    def answers(reader: Generator) -> list[str]:
        rows = [(question, [passage, HAMLET]) for question, passage in PAIRS]
        return reader.write(reader.encode_contexts(*reader.encode.pad(reader.encode(rows))), 6)

    assert answers(served.generator) == answers(model.generator)
    manifest = json.loads((folder / "serving.json").read_text())
    assert manifest["metrics"] == {"em": 0.5}
    ids = model.estimator.encode.tokenizer.convert_tokens_to_ids(["true", "false"])
    assert list(manifest["parts"][ESTIMATOR]["label_ids"].values()) == ids
    alone = AutoModelForSeq2SeqLM.from_pretrained(folder / ESTIMATOR)  # transformers alone reads a part
    assert all(torch.equal(a, b) for a, b in zip(alone.parameters(), model.estimator.network.parameters(), strict=True))


def test_an_encoder_only_estimator_alone_can_be_served(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    for family in ("bert", "big_bird"):
        re = estimator(checkpoints, family)
        ReRagModel(re, None).save(tmp_path / family)
        served = ReRagModel.load(tmp_path / family, "cpu", needs=(ESTIMATOR,))
        assert served.generator is None
        assert served.estimator is not None
        assert served.estimator.scores(PAIRS) == pytest.approx(re.scores(PAIRS), abs=1e-6)
        with pytest.raises(ArtifactError, match=r"holds no generator, only \['estimator'\]"):
            ReRagModel.load(tmp_path / family, "cpu", needs=(GENERATOR,))


def test_a_damaged_or_foreign_folder_is_refused(saved: tuple[ReRagModel, Path], tmp_path: Path) -> None:
    _, folder = saved
    with pytest.raises(MissingInputError, match="no serving folder"):
        ReRagModel.load(tmp_path / "nowhere")
    for part in (ESTIMATOR, GENERATOR):
        flipped = tmp_path / f"flipped-{part}"
        shutil.copytree(folder, flipped)
        weights = bytearray((flipped / part / "model.safetensors").read_bytes())
        weights[-100] ^= 1
        (flipped / part / "model.safetensors").write_bytes(weights)
        with pytest.raises(ArtifactError, match=rf"{part}/model\.safetensors is corrupt"):
            ReRagModel.load(flipped)
    manifest = json.loads((folder / "serving.json").read_text())
    parts = {**manifest["parts"], ESTIMATOR: {"text_format": "fid; v0", "max_tokens": 64}}
    for key, value, cause in (
        ("text_format", "another", "trained on the text format 'another'"),
        ("kind", "triple_classifier", "holds a 'triple_classifier'"),
        ("parts", parts, "made for the text format 'fid; v0'"),
    ):
        (folder / "serving.json").write_text(json.dumps({**manifest, key: value}))
        with pytest.raises(ArtifactError, match=cause):
            ReRagModel.load(folder)
