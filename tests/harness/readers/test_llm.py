"""The language model as reader, with a real tiny causal LM.

Answers, marginals against brute force, failures, refusals.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from common.records import Passage, Question, Ranked
from harness.llm.local import CausalLm
from harness.readers.llm import LlmReader
from harness.readers.t5 import read_contexts
from harness.systems.rerag import ReRag
from harness.systems.retrieve_read import RetrieveRead
from tests.helpers.llm_world import asked, write_prompt, write_rows
from tests.helpers.rerag_world import write_serving
from tests.helpers.scripted_lm import ScriptedLm

pytestmark = pytest.mark.numeric
QUESTIONS = asked()


@pytest.fixture(scope="module")
def llm(chat_lm: Path) -> CausalLm:
    return CausalLm(str(chat_lm), device="cpu")


@pytest.fixture(scope="module")
def prompt(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_prompt(tmp_path_factory.mktemp("prompt")))


class Given:
    """A retriever that finds what is written down."""

    def __init__(self, hits: Mapping[str, list[Ranked]]) -> None:
        self.hits = hits

    def search(self, queries: Sequence[str], k: int) -> list[list[Ranked]]:
        return [self.hits[query][:k] for query in queries]


def evidence(question: Question) -> list[Ranked]:
    return [Ranked(passage, float(-place)) for place, passage in enumerate(question.passages)]


def test_all_passages_are_read_in_one_prompt(llm: CausalLm, prompt: str) -> None:
    hits = [evidence(question)[::-1] for question in QUESTIONS]  # the tiny model answers from the last document
    reader = LlmReader(llm, prompt)
    answers = reader.read([*QUESTIONS, Question("none", "What ?")], [*hits, []])
    assert answers[-1].text == ""
    assert answers[-1].costs["model_calls"] == 0
    right = [answer.text == question.answers[0] for answer, question in zip(answers, QUESTIONS, strict=False)]
    assert sum(right) >= 7
    for answer, question in zip(answers, QUESTIONS, strict=False):
        assert answer.question_id == question.id
        assert answer.costs["model_calls"] == 1
        assert answer.costs["tokens"] > 4 * 6
        assert [hit.passage for hit in answer.evidence] == list(question.passages[::-1])
        assert "truncated_calls" not in answer.costs
    (cut,) = LlmReader(llm, prompt, max_answer_tokens=1).read(QUESTIONS[:1], hits[:1])
    assert cut.costs["truncated_calls"] == 1


def test_a_prompt_that_is_too_long_is_cut_and_says_so(chat_lm: Path, prompt: str) -> None:
    llm = CausalLm(str(chat_lm), device="cpu", context_tokens=200)
    reader = LlmReader(llm, prompt)
    long = " ".join(QUESTIONS[1].passages[0].text for _ in range(60))
    hits = [
        evidence(QUESTIONS[0]),
        [Ranked(Passage.of("", long), 1.0), Ranked(QUESTIONS[1].passages[1], 0.0)],
        evidence(QUESTIONS[2]),
    ]
    asked = [QUESTIONS[0], QUESTIONS[1], Question("long", f"{QUESTIONS[2].text} " * 200)]
    answers = RetrieveRead(Given(dict(zip((each.text for each in asked), hits, strict=True))), 4, reader).answer(asked)
    assert [answer.notes.get("error") for answer in answers] == [None, None, None]
    assert answers[0].notes.get("cut") is None
    assert answers[0].text == LlmReader(llm, prompt).read(asked[:1], hits[:1])[0].text  # as alone
    notes = [answer.notes["cut"]["LlmReader"] for answer in answers[1:]]  # type: ignore[index]
    assert notes[0].startswith("reads the first ")
    assert notes[0].endswith(" characters of each passage")
    assert notes[1].endswith(f"of the question's {len(asked[2].text):,} characters")
    read, *_ = llm.reply([reader._chat(reader.together, asked[1].text, [hit.passage for hit in hits[1]])])
    assert 200 - 8 - 4 <= read.prompt_tokens <= 200 - 8  # as much as leaves room for the reply: 8 tokens
    assert reader.matrices([asked[2].text], [[hit.passage for hit in hits[2]]])[0].failed == ()
    assert LlmReader(llm, prompt, closed_book=prompt).read_closed_book([asked[2]])[0].notes == {}


def test_what_saved_answers_depend_on(llm: CausalLm, tmp_path: Path) -> None:
    file, seen = tmp_path / "own.yaml", []
    for text in ("user: ${question}", "user: '${question}?'", "user: ${question}\nmax_tokens: 5"):
        file.write_text(text)
        seen.append(LlmReader(llm, str(file)).recipe)
    assert [seen.index(each) for each in seen] == [0, 1, 2]


def test_replies_are_sampled_at_the_reader_s_temperature(llm: CausalLm, prompt: str) -> None:
    texts, contexts = [q.text for q in QUESTIONS], [q.passages for q in QUESTIONS]
    greedy, again, sampled = (
        [m.written for m in LlmReader(llm, prompt, "fast", temperature=t).matrices(texts, contexts)] for t in (0, 0, 3)
    )
    assert greedy == again != sampled


def score_alone(folder: Path, text: str, reply: str) -> float:
    """log P(reply and its end | text) by transformers alone, one text at a time."""
    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    chat = [{"role": "user", "content": text}]
    head = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    tail = tokenizer(reply)["input_ids"] + [tokenizer.eos_token_id]
    with torch.no_grad():
        logp = network(torch.tensor([head + tail])).logits[0].log_softmax(dim=-1)
    return sum(float(logp[len(head) + place - 1, token]) for place, token in enumerate(tail))


@pytest.mark.parametrize("marginal", ["generated", "thorough", "fast"])
def test_marginals_equal_brute_force(llm: CausalLm, prompt: str, chat_lm: Path, marginal: str) -> None:
    folder, question = chat_lm, QUESTIONS[0]
    logits = [0.3, -1.0, 2.0, 0.5]
    contexts = [Ranked(passage, logit) for passage, logit in zip(question.passages, logits, strict=True)]
    (reading,) = read_contexts(LlmReader(llm, prompt, marginal), [question.text], [contexts])
    total = sum(math.exp(logit) for logit in logits)
    texts = [f"<passage>\n{passage.text}\n</passage> Question: {question.text}" for passage in question.passages]
    expected: dict[str, float] = {}
    assert len(set(reading.written)) > 1
    for candidate in dict.fromkeys(reading.written):
        for place, logit in enumerate(logits):
            wrote = reading.written[place] == candidate
            if marginal == "thorough" or wrote:
                p = 1.0 if marginal == "fast" else math.exp(score_alone(folder, texts[place], candidate))
                expected[candidate] = expected.get(candidate, 0.0) + math.exp(logit) / total * p
    assert {text: math.exp(logp) for text, logp in reading.candidates.items()} == pytest.approx(expected, abs=1e-5)
    best = max(expected, key=expected.__getitem__)
    assert (reading.text, math.exp(reading.logprob)) == (best, pytest.approx(expected[best], abs=1e-5))
    assert sum(reading.shares) == pytest.approx(1, abs=1e-6)


def test_a_context_that_fails_counts_as_absent(llm: CausalLm, prompt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CausalLm, "room", lambda *_: math.inf)  # as an endpoint, whose context is not known
    question = QUESTIONS[1]
    long = Passage.of("long", "amber " * 4000)
    reader = LlmReader(llm, prompt)
    hits = [Ranked(question.passages[0], 0.0), Ranked(long, 9.0), Ranked(question.passages[1], 1.0)]
    kept = [hits[0], hits[2]]
    (reading, without, nothing) = read_contexts(reader, [question.text] * 3, [hits, kept, [hits[1]]])
    assert reading.candidates == pytest.approx(without.candidates)
    assert reading.shares[1] == 0
    assert reading.failed[0] == reading.failed[2] == ""
    assert "tokens" in reading.failed[1]
    assert (nothing.text, nothing.candidates, nothing.answer_logprob) == ("", {}, None)
    assert reading.answer_logprob == reading.logprob
    assert reader.spent["failed_calls"] == 2
    (answer,) = reader.read([question], [[hits[1]]])
    assert answer.text == ""
    assert "tokens" in str(answer.notes["error"])
    assert answer.costs["failed_calls"] == 1


def test_a_strategy_reads_with_it_in_the_place_of_its_generator(
    llm: CausalLm, prompt: str, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    serving = write_serving(checkpoints["t5"], tmp_path / "both", max_tokens=96, temperature=3.0)
    system = ReRag(None, serving, contexts=3, reader=LlmReader(llm, prompt), device="cpu")
    assert system.model.generator is None  # not loaded
    assert system.relevance_temperature == 1  # that of the folder was fitted for its generator
    for question, answer in zip(QUESTIONS, system.answer(QUESTIONS), strict=True):
        own = [hit.passage.text.split()[-2] for hit in answer.evidence]
        contexts = answer.notes["contexts"]
        assert sum(context["alone"] == value for context, value in zip(contexts, own, strict=True)) >= 2
        assert answer.text in own
        assert answer.logprob <= 0
        assert answer.costs["model_calls"] == 4 + 3
        assert answer.costs["reply_tokens"] > 0
        assert answer.question_id == question.id


def test_examples_of_a_file_follow_those_of_the_prompt(llm: CausalLm, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "train.json")
    reader = LlmReader(llm, "rerag_nq", examples=str(file), examples_layout="hotpotqa", shots=8)
    answers = [example["answer"] for example in reader.alone.examples]
    assert answers[:3] == ["Kobe Bryant", "July 5, 2018", "2008"]
    assert answers[3:] == [question.answers[0] for question in QUESTIONS[:5]]
    assert (
        reader.alone.examples[3]["title"] == QUESTIONS[0].passages[0].title
    )  # the gold passage, not the last that agrees
    assert reader.alone.examples[3]["text"] == QUESTIONS[0].passages[0].text
    assert [each["answer"] for each in LlmReader(llm, shots=1).alone.examples] == ["Kobe Bryant"]
    assert LlmReader(llm, shots=1).together.examples == ()


def test_examples_for_all_passages_have_all_gold_ones_and_those_of_closed_book_none(tmp_path: Path) -> None:
    rows = json.loads(write_rows(tmp_path / "train.json").read_text())
    rows[0]["supporting_facts"].append([rows[0]["context"][2][0], 0])
    rows[1]["answer"] = "yes"  # in no passage
    (tmp_path / "train.json").write_text(json.dumps(rows))
    scripted = ScriptedLm({QUESTIONS[3].text: ["opal"]})
    options = {"examples": str(tmp_path / "train.json"), "examples_layout": "hotpotqa", "shots": 2}
    reader = LlmReader(scripted, "few_shot", **options)
    reader.read(QUESTIONS[3:4], [evidence(QUESTIONS[3])[:1]])
    reader.read_closed_book(QUESTIONS[3:4])
    chats = [chat for asked in scripted.asked for chat in asked]
    assert [chat.one_line for chat in chats] == [True, True]
    first, second = (question.passages for question in QUESTIONS[:2])

    def shown(passages: Sequence[Passage]) -> str:
        return "".join(f"<passage>\n{each.title}\n{each.text}\n</passage>\n\n" for each in passages)

    asked = [f"Question: {QUESTIONS[n].text}\nAnswer:" for n in (0, 1, 3)]
    answers = [f"\n{QUESTIONS[0].answers[0]}\n\n", "\nyes\n\n", ""]
    documents = [shown([first[0], first[2]]), shown(second[:1]), shown(QUESTIONS[3].passages[:1])]
    expected = [
        "".join(docs + text + answer for docs, text, answer in zip(each, asked, answers, strict=True))
        for each in (documents, ["", "", ""])
    ]
    assert [chat.messages[0].content for chat in chats] == expected


def test_thorough_scores_the_candidates_of_all_questions_in_one_call(
    llm: CausalLm, prompt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    scores = CausalLm.logprobs
    monkeypatch.setattr(CausalLm, "room", lambda *_: math.inf)
    monkeypatch.setattr(CausalLm, "logprobs", lambda *given: calls.append(len(given[2])) or scores(*given))
    reader, texts = LlmReader(llm, prompt, "thorough"), [question.text for question in QUESTIONS[:3]]
    contexts = [QUESTIONS[0].passages, (Passage.of("long", "amber " * 4000),), QUESTIONS[2].passages[:2]]
    together = reader.matrices(texts, contexts)
    assert calls == [sum(len(matrix.candidates) * len(matrix.written) for matrix in together)]
    assert (together[1].candidates, together[1].answer_logp_AN) == ((), None)  # its only call failed
    for matrix, text, passages in zip(together[::2], texts[::2], contexts[::2], strict=True):
        (alone,) = reader.matrices([text], [passages])
        assert matrix.written == alone.written
        torch.testing.assert_close(matrix.answer_logp_AN, alone.answer_logp_AN, atol=1e-5, rtol=0)
    (nothing,) = reader.matrices(texts[:1], contexts[1:2])
    assert nothing.candidates == ()
