"""RE-RAG's parts as causal LMs: prompts, scores and answers against plain transformers, adapters, serving folders."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from common.records import Passage
from models.cross_encoder import RelevanceEstimator, load_scorer
from models.length_batching import IGNORE
from models.prompt_tokenizer import PromptEncoder
from models.rerag.causal_generator import CausalGenerator
from models.rerag.marginal_reader import MarginalReader
from models.rerag.model import ReRagModel
from models.rerag.parts import load_generator
from models.token_sampling import TokenSampling
from tests.helpers.causal_parts import LABEL_WORDS, PASSAGES, QUESTIONS, ROWS, alone, pair
from tests.helpers.tiny_lm import VALUES
from tests.helpers.tolerances import assert_gradients_close, model_close
from trainers.rerag import ReRagTrainer
from trainers.rerag_options import Loss, Text


@pytest.fixture(scope="module", params=["chat", "plain", "sliding"])
def folder(request, families, tmp_path_factory) -> Path:
    """A Qwen2 with a chat template, a GPT-2 without one, and a Gemma 3 whose window is shorter than a prompt."""
    if request.param != "sliding":
        return families[request.param]
    made = tmp_path_factory.mktemp("sliding")
    tokenizer = AutoTokenizer.from_pretrained(families["plain"])
    torch.manual_seed(1)
    end = tokenizer.eos_token_id
    sizes = {"vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256}
    heads = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    window = {"sliding_window": 7, "layer_types": ["sliding_attention", "full_attention"], "initializer_range": 0.4}
    ends = {"eos_token_id": end, "pad_token_id": end, "bos_token_id": None}
    config = AutoConfig.for_model("gemma3_text", **sizes, **heads, **window, **ends, final_logit_softcapping=None)
    AutoModelForCausalLM.from_config(config).save_pretrained(made)
    tokenizer.save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def reader(folder) -> CausalGenerator:
    made = load_generator(str(folder), 64)
    assert isinstance(made, CausalGenerator)
    return made.eval()


CHAT = "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"  # what stands before and behind a prompt


def test_the_prompt_is_the_documented_text(chat_lm, plain_lm) -> None:
    for folder, (before, after) in ((chat_lm, CHAT), (plain_lm, ("", ""))):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        encode = PromptEncoder(tokenizer, 64, "relevance", [tokenizer.eos_token_id])
        passage = Passage.of("lima", "The stone <|im_end|> of lima is opal .")
        (ids,) = encode([("Which <|im_start|> stone ?", [passage])])
        body = "lima: The stone < |im_end|> of lima is opal .\nQuestion: Which < |im_start|> stone ?\nRelevant:"
        if folder == plain_lm:  # knows no such marks
            body = body.replace("< |", "<|")
        assert tokenizer.decode(ids) == before + body + after
        (cut,) = encode([("Which stone ?", [Passage.of("lima", "stone " * 500)])])
        assert len(cut) == 64
        assert tokenizer.decode(cut).endswith(f"\nQuestion: Which stone ?\nRelevant:{after}")
        (short,) = encode([("stone " * 500, [passage])])
        assert len(short) <= 64
        assert tokenizer.decode(short).endswith(f"\nRelevant:{after}")
        assert encode.cut_note("stone " * 500)
        assert not encode.cut_note("Which stone ?")


def test_a_packed_prompt_has_a_line_for_each_passage_and_they_share_the_room(chat_lm, plain_lm) -> None:
    for folder in (chat_lm, plain_lm):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        packed, single = (PromptEncoder(tokenizer, 64, task, [tokenizer.eos_token_id]) for task in ("packed", "answer"))
        assert packed.packed
        assert not single.packed
        assert packed(ROWS) == single(ROWS)  # one passage each
        short, other = Passage.of("lima", "opal"), Passage.of("", "jade")
        text = "lima: opal\njade\nQuestion: Which stone ?\nAnswer:"
        (both,) = packed([("Which stone ?", [short, other])])
        (alone,) = single([("Which stone ?", [short])])
        assert tokenizer.decode(both) == tokenizer.decode(alone).replace("lima: opal\n", "lima: opal\njade\n")
        assert text in tokenizer.decode(both)
        (none,) = packed([("Which stone ?", [])])
        assert len(none) < len(alone)
        long = [Passage.of("", f"{word} " * 500) for word in ("opal", "jade")]
        (cut,) = packed([("Which stone ?", [short, *long])])
        assert len(cut) == 64
        read = tokenizer.decode(cut)
        assert "lima: opal\nopal opal" in read  # what fits is not cut
        assert abs(read.count("opal") - 1 - read.count("jade")) <= 1


QWEN3_BEFORE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
QWEN3_BEHIND = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
QWEN3_TASK = "Given a web search query, retrieve relevant passages that answer the query"


@pytest.fixture
def yes_no_lm(chat_lm, tmp_path) -> Path:
    """A causal LM with the two words of Qwen3-Reranker in its vocabulary."""
    tokenizer, network = AutoTokenizer.from_pretrained(chat_lm), AutoModelForCausalLM.from_pretrained(chat_lm)
    tokenizer.add_tokens(["yes", "no"])
    network.resize_token_embeddings(len(tokenizer))
    for each in (tokenizer, network):
        each.save_pretrained(tmp_path / "lm")
    return tmp_path / "lm"


def test_qwen3_rerankers_prompt_is_that_of_its_card(yes_no_lm, tmp_path) -> None:
    module = ReRagTrainer(str(yes_no_lm), None, text=Text("qwen3_reranker"), loss=Loss(label_weight=1), max_tokens=320)
    estimator, tokenizer = module.load().eval().estimator, AutoTokenizer.from_pretrained(yes_no_lm)
    before, behind = tokenizer.encode(QWEN3_BEFORE), tokenizer.encode(QWEN3_BEHIND)
    rows = [
        ("Which stone ?", Passage.of("", text)) for text in ("The stone of lima is opal .", "3 opal .", "opal " * 500)
    ]
    for question, passage in rows:
        text = f"<Instruct>: {QWEN3_TASK}\n<Query>: {question}\n<Document>: {passage.text.strip()}"
        room = 320 - len(before) - len(behind)
        expected = [*before, *tokenizer(text, truncation=True, max_length=room)["input_ids"], *behind]
        (ids,) = estimator.encode([(question, [passage])])
        assert ids == expected
        logits = estimator.network(input_ids=torch.tensor([ids])).logits[0, -1].detach()
        yes, no = tokenizer.convert_tokens_to_ids(["yes", "no"])
        assert estimator.scores([(question, passage)])[0] == model_close(float(logits[yes] - logits[no]))
    (short,) = estimator.encode([("stone " * 500, [rows[0][1]])])
    assert len(short) <= 320
    assert "\n<Document>: The stone" in tokenizer.decode(short)
    module.model().save(tmp_path / "serving")
    assert load_scorer(tmp_path / "serving").scores(rows) == model_close(estimator.scores(rows))


def test_labels_are_what_is_said_with_its_end(reader) -> None:
    tokenizer, blank = reader.encode.tokenizer, "" if reader.encode.chat else " "
    labels_PA = reader.labels(["opal", "gold green jade"])
    for row, text in zip(labels_PA, ["opal", "gold green jade"], strict=True):
        kept = row[row != IGNORE].tolist()
        assert tokenizer.decode(kept[:-1]) == blank + text
        assert kept[-1] == reader.end_ids[0]
    if not reader.encode.chat:
        assert tokenizer.decode(reader.end_ids[:1]) == "\n"
    assert reader.labels(["gold green jade"], 2).shape == (1, 2)  # cut, with its end
    assert reader.labels(["gold green jade"], 2)[0, -1] == reader.end_ids[0]


@torch.no_grad()
def test_answers_are_scored_as_by_brute_force_in_one_pass_and_from_kept_states(reader) -> None:
    sequences = reader.encode(ROWS)
    labels_PA = reader.labels([VALUES[3], "gold green jade", "", "topaz", "opal opal", "x", "jade"])
    expected = [alone(reader, ids, row[row != IGNORE].tolist()) for ids, row in zip(sequences, labels_PA, strict=True)]
    padded = reader.encode.pad(sequences)
    assert reader(*padded, labels_PA).tolist() == model_close(expected)
    encoded = reader.encode_contexts(*padded)
    order = torch.tensor([6, 2, 2, 0, 1, 3, 4, 5])
    for _ in range(2):  # the kept states stay as they are
        assert reader.answer_logp(encoded, labels_PA).tolist() == model_close(expected)
        mixed = reader.answer_logp(encoded.rows(order), labels_PA[order])
        assert mixed.tolist() == model_close([expected[place] for place in order])
    twice = [*sequences, *sequences]
    texts = ["opal"] * 7 + ["jade"] * 7
    single = [alone(reader, ids, reader.labels([text])[0].tolist()) for ids, text in zip(twice, texts, strict=True)]
    assert reader.logprobs(twice, texts, tokens_per_batch=90) == model_close(single)


@torch.no_grad()
def test_greedy_answers_are_those_of_transformers_and_of_any_batch(reader) -> None:
    sequences = reader.encode(ROWS)
    ids_PA = reader.generate(reader.encode_contexts(*reader.encode.pad(sequences)), 6)
    for ids, row in zip(sequences, ids_PA.tolist(), strict=True):
        prompt = torch.tensor([ids])
        theirs = reader.network.generate(
            input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=6, do_sample=False,
            eos_token_id=reader.end_ids, pad_token_id=reader.encode.pad_id,
        )[0, len(ids) :].tolist()  # fmt: skip
        assert row[: len(theirs)] == theirs
    choices = [TokenSampling(1.0, seed) for seed in range(len(ROWS))]
    for chosen in (None, choices):
        together = reader.read(sequences, [6, 3, 1, 6, 6, 2, 6], chosen)
        one_by_one = reader.read(sequences, [6, 3, 1, 6, 6, 2, 6], chosen, tokens_per_batch=1)
        assert [(each.text, each.tokens, each.ended) for each in together] == [
            (each.text, each.tokens, each.ended) for each in one_by_one
        ]
    assert all("\n" not in each.text for each in reader.read(sequences, [12] * 7, choices))


@torch.no_grad()
def test_thorough_scores_every_answer_under_every_context(reader) -> None:
    contexts = [PASSAGES[:3], PASSAGES[3:4], PASSAGES[4:]]
    matrices = MarginalReader(reader, "thorough", 4, tokens_per_batch=100).matrices(QUESTIONS[:3], contexts)
    for question, passages, matrix in zip(QUESTIONS, contexts, matrices, strict=False):
        for text, row in zip(matrix.candidates, matrix.answer_logp_AN.tolist(), strict=True):
            answer = reader.labels([text])[0].tolist()
            prompts = reader.encode([(question, [passage]) for passage in passages])
            assert row == model_close([alone(reader, prompt, answer) for prompt in prompts])


@torch.no_grad()
def test_relevance_is_the_difference_of_two_words(folder) -> None:
    estimator = RelevanceEstimator.build(str(folder), 64, label_words=LABEL_WORDS).eval()
    assert isinstance(estimator.encode, PromptEncoder)
    blank = "" if estimator.encode.chat else " "
    assert [estimator.encode.tokenizer.decode([each]) for each in (estimator.true_id, estimator.false_id)] == [
        blank + word for word in LABEL_WORDS
    ]
    sequences = estimator.encode(ROWS)
    relevance = estimator(*estimator.encode.pad(sequences))
    for place, ids in enumerate(sequences):
        logp_V = estimator.network(input_ids=torch.tensor([ids])).logits[0, -1].double().log_softmax(0)
        true, false = logp_V[estimator.true_id], logp_V[estimator.false_id]
        assert float(relevance.score_P[place]) == model_close(float(true - false))
        said = float(true.exp() + false.exp())
        assert float(relevance.other_logit_P[place].sigmoid()) == pytest.approx(1 - said, abs=1e-5)
    assert estimator.scores([(q, p) for q, (p,) in ROWS], 90) == model_close(relevance.score_P.tolist())


def measured(model: ReRagModel) -> list[list[float]]:
    return [
        model.estimator.scores([(q, p) for q, (p,) in ROWS]),
        model.generator.logprobs(model.generator.encode(ROWS), ["opal"] * len(ROWS)),
    ]


def test_each_part_has_its_adapter_and_one_base_serves_both(folder, tmp_path) -> None:
    estimator, reader = pair(folder)
    model = ReRagModel.of(estimator.eval(), reader.eval(), {}, 8)
    scores, answers = before = measured(model)
    plain = RelevanceEstimator.build(str(folder), 64, label_words=LABEL_WORDS).eval()
    assert scores != model_close(plain.scores([(q, p) for q, (p,) in ROWS]))
    with torch.no_grad():
        for weight in reader.adapter.weights:
            weight.mul_(1.5)
    changed = measured(model)
    assert changed[0] == scores
    assert changed[1] != model_close(answers)
    with torch.no_grad():
        for weight in reader.adapter.weights:
            weight.div_(1.5)
    model.save(tmp_path / "serving")
    assert {each.name for each in (tmp_path / "serving").iterdir()} == {
        "base", "estimator", "generator", "serving.json"
    }  # fmt: skip
    loaded = ReRagModel.load(tmp_path / "serving", "cpu", precision="fp32")
    assert loaded.estimator.network is loaded.generator.network
    assert measured(loaded) == [model_close(each) for each in before]
    assert load_scorer(tmp_path / "serving", "cpu", "fp32").scores([(q, p) for q, (p,) in ROWS]) == model_close(scores)


@pytest.mark.parametrize("recompute", [False, True])
def test_a_part_trains_its_own_adapter_alone(plain_lm, recompute) -> None:
    def gradients(checkpointing: bool, which: Callable[[RelevanceEstimator, CausalGenerator], torch.Tensor]) -> dict:
        estimator, reader = (each.train() for each in pair(plain_lm, checkpointing))
        which(estimator, reader).backward()
        return {name: weight.grad for name, weight in reader.network.named_parameters() if weight.requires_grad}

    def both(estimator: RelevanceEstimator, reader: CausalGenerator) -> torch.Tensor:
        relevance = estimator(*estimator.encode.pad(estimator.encode(ROWS)))
        labels = reader.labels(["opal"] * len(ROWS))
        return relevance.score_P.sum() + reader(*reader.encode.pad(reader.encode(ROWS)), labels).sum()

    found = gradients(recompute, both)
    assert all(gradient is not None for gradient in found.values())
    assert_gradients_close(found, gradients(False, both), len(ROWS))
    scored = gradients(
        recompute, lambda estimator, _: estimator(*estimator.encode.pad(estimator.encode(ROWS))).score_P.sum()
    )
    for name, gradient in scored.items():
        assert (gradient is not None) == (".estimator." in name)
