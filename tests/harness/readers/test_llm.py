"""The language model as reader, with a real tiny causal LM.

Answers, marginals against brute force, failures, refusals.
"""

import json
import math
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
from tests.helpers.table_rewriter import TableRetriever

pytestmark = pytest.mark.numeric
QUESTIONS = asked()


@pytest.fixture(scope="module")
def llm(chat_lm: Path) -> CausalLm:
    return CausalLm(str(chat_lm), device="cpu")


@pytest.fixture(scope="module")
def prompt(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_prompt(tmp_path_factory.mktemp("prompt")))


def evidence(question: Question) -> list[Ranked]:
    return [Ranked(passage, float(-place)) for place, passage in enumerate(question.passages)]


def test_all_passages_are_read_in_one_prompt(llm: CausalLm, prompt: str) -> None:
    hits = [evidence(question)[::-1] for question in QUESTIONS]  # the tiny model answers from the last document
    *answers, nothing = LlmReader(llm, prompt).read([*QUESTIONS, Question("none", "What ?")], [*hits, []])
    assert (nothing.text, nothing.costs["model_calls"]) == ("", 0)
    assert sum(answer.text == question.answers[0] for answer, question in zip(answers, QUESTIONS, strict=True)) >= 7
    for answer, question in zip(answers, QUESTIONS, strict=True):
        assert (answer.question_id, answer.costs["model_calls"]) == (question.id, 1)
        assert answer.costs["tokens"] > 4 * 6
        assert [hit.passage for hit in answer.evidence] == list(question.passages[::-1])
        assert "truncated_calls" not in answer.costs
    (cut,) = LlmReader(llm, prompt, max_answer_tokens=1).read(QUESTIONS[:1], hits[:1])
    assert cut.costs["truncated_calls"] == 1


def test_a_prompt_that_is_too_long_is_cut_and_says_so(chat_lm: Path, prompt: str) -> None:
    llm = CausalLm(str(chat_lm), device="cpu", context_tokens=200)
    reader = LlmReader(llm, prompt)
    long = " ".join(QUESTIONS[1].passages[0].text for _ in range(60))
    long_hits = [Ranked(Passage.of("", long), 1.0), Ranked(QUESTIONS[1].passages[1], 0.0)]
    hits = [evidence(QUESTIONS[0]), long_hits, evidence(QUESTIONS[2])]
    asked = [QUESTIONS[0], QUESTIONS[1], Question("long", f"{QUESTIONS[2].text} " * 200)]
    passages = [[hit.passage for hit in each] for each in hits]
    retriever = TableRetriever(dict(zip((each.text for each in asked), passages, strict=True)))
    answers = RetrieveRead(retriever, 4, reader).answer(asked)
    assert [answer.notes.get("error") for answer in answers] == [None, None, None]
    assert answers[0].notes.get("cut") is None
    assert answers[0].text == LlmReader(llm, prompt).read(asked[:1], hits[:1])[0].text  # as alone
    notes = [answer.notes["cut"]["LlmReader"] for answer in answers[1:]]  # type: ignore[index]
    assert notes[0].startswith("reads the first ")
    assert notes[0].endswith(" characters of each passage")
    assert notes[1].endswith(f"of the question's {len(asked[2].text):,} characters")
    (read,) = llm.reply([reader._chat(reader.together, asked[1].text, passages[1])])
    assert 200 - 8 - 4 <= read.prompt_tokens <= 200 - 8  # as much as leaves room for the reply: 8 tokens
    assert reader.matrices([asked[2].text], [passages[2]])[0].failed == ()
    assert LlmReader(llm, prompt, closed_book=prompt).read_closed_book([asked[2]])[0].notes == {}


def test_what_saved_answers_depend_on(llm: CausalLm, tmp_path: Path) -> None:
    file, seen = tmp_path / "own.yaml", []
    for text in ("user: ${question}", "user: '${question}?'", "user: ${question}\nmax_tokens: 5"):
        file.write_text(text)
        seen.append(LlmReader(llm, str(file)).recipe)
    assert [seen.index(each) for each in seen] == [0, 1, 2]


def test_replies_are_sampled_at_the_reader_s_temperature(llm: CausalLm, prompt: str) -> None:
    texts, contexts = [q.text for q in QUESTIONS], [q.passages for q in QUESTIONS]
    readers = [LlmReader(llm, prompt, "fast", temperature=temperature) for temperature in (0, 0, 3)]
    greedy, again, sampled = ([matrix.written for matrix in each.matrices(texts, contexts)] for each in readers)
    assert greedy == again != sampled


@pytest.mark.parametrize("marginal", ["generated", "thorough"])
def test_scores_equal_brute_force(llm: CausalLm, prompt: str, chat_lm: Path, marginal: str) -> None:
    """By transformers alone, one text at a time: log P(candidate and its end | passage and question)."""
    tokenizer, network = AutoTokenizer.from_pretrained(chat_lm), AutoModelForCausalLM.from_pretrained(chat_lm).eval()
    question = QUESTIONS[0]
    (matrix,) = LlmReader(llm, prompt, marginal).matrices([question.text], [question.passages])
    assert len(matrix.candidates) > 1
    (fast,) = LlmReader(llm, prompt, "fast").matrices([question.text], [question.passages])
    assert (fast.written, fast.answer_logp_AN) == (matrix.written, None)
    for row, candidate in enumerate(matrix.candidates):
        tail = [*tokenizer(candidate)["input_ids"], tokenizer.eos_token_id]
        for column, passage in enumerate(question.passages):
            text = f"<passage>\n{passage.text}\n</passage> Question: {question.text}"
            chat = [{"role": "user", "content": text}]
            head = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
            with torch.no_grad():
                logp_TV = network(torch.tensor([head + tail])).logits[0, len(head) - 1 : -1].log_softmax(dim=-1)
            p = math.exp(logp_TV.gather(1, torch.tensor(tail)[:, None]).sum())
            wrote = matrix.written[column] == candidate
            expected = p if wrote or marginal == "thorough" else 0.0
            assert math.exp(matrix.answer_logp_AN[row, column]) == pytest.approx(expected, abs=1e-5)


def test_a_context_that_fails_counts_as_absent(llm: CausalLm, prompt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CausalLm, "room", lambda *_: math.inf)  # as an endpoint, whose context is not known
    question = QUESTIONS[1]
    long = Passage.of("long", "amber " * 4000)
    reader = LlmReader(llm, prompt)
    first, lost, second = (Ranked(question.passages[0], 0.0), Ranked(long, 9.0), Ranked(question.passages[1], 1.0))
    found = read_contexts(reader, [question.text] * 3, [[first, lost, second], [first, second], [lost]])
    reading, without, nothing = found
    assert reading.candidates == pytest.approx(without.candidates)
    assert (reading.shares[1], reading.failed[0], reading.failed[2]) == (0, "", "")
    assert "tokens" in reading.failed[1]
    assert (nothing.text, nothing.candidates, nothing.answer_logprob) == ("", {}, None)
    assert reading.answer_logprob == reading.logprob
    assert reader.spent["failed_calls"] == 2
    (answer,) = reader.read([question], [[lost]])
    assert (answer.text, answer.costs["failed_calls"]) == ("", 1)
    assert "tokens" in str(answer.notes["error"])


def test_a_strategy_reads_with_it_in_the_place_of_its_generator(llm, prompt: str, checkpoints, tmp_path: Path) -> None:
    serving = write_serving(checkpoints["t5"], tmp_path / "both", max_tokens=96, temperature=3.0)
    system = ReRag(None, serving, contexts=3, reader=LlmReader(llm, prompt), device="cpu")
    assert system.model.generator is None  # not loaded
    assert system.relevance_temperature == 1  # that of the folder was fitted for its generator
    for answer in system.answer(QUESTIONS):
        own = [hit.passage.text.split()[-2] for hit in answer.evidence]
        said = [context["alone"] for context in answer.notes["contexts"]]
        assert sum(one == other for one, other in zip(said, own, strict=True)) >= 2
        assert (answer.text in own, answer.logprob <= 0, answer.costs["model_calls"]) == (True, True, 4 + 3)
        assert answer.costs["reply_tokens"] > 0


def test_examples_of_a_file_follow_those_of_the_prompt(llm: CausalLm, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "train.json")
    reader = LlmReader(llm, "rerag_nq", examples=str(file), examples_layout="hotpotqa", shots=8)
    own = ["Kobe Bryant", "July 5, 2018", "2008"]
    assert [e["answer"] for e in reader.alone.examples] == [*own, *(question.answers[0] for question in QUESTIONS[:5])]
    first, gold = reader.alone.examples[3], QUESTIONS[0].passages[0]  # not the last one, which agrees
    assert (first["title"], first["text"]) == (gold.title, gold.text)
    one = LlmReader(llm, shots=1)
    assert ([e["answer"] for e in one.alone.examples], one.together.examples) == (own[:1], ())


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
    asked = [f"Question: {QUESTIONS[n].text}\nAnswer:" for n in (0, 1, 3)]
    whole = [*map("".join, zip(asked, [f"\n{QUESTIONS[0].answers[0]}\n\n", "\nyes\n\n", ""], strict=True))]
    shown = [
        "".join(f"<passage>\n{each.title}\n{each.text}\n</passage>\n\n" for each in passages)
        for passages in ([first[0], first[2]], second[:1], QUESTIONS[3].passages[:1])
    ]
    expected = ["".join(passages + text for passages, text in zip(shown, whole, strict=True)), "".join(whole)]
    assert [chat.messages[0].content for chat in chats] == expected


def test_thorough_scores_the_candidates_of_all_questions_in_one_call(llm: CausalLm, prompt: str, monkeypatch) -> None:
    calls, scores = [], CausalLm.logprobs
    monkeypatch.setattr(CausalLm, "room", lambda *_: math.inf)
    monkeypatch.setattr(CausalLm, "logprobs", lambda *given: calls.append(len(given[2])) or scores(*given))
    reader, texts = LlmReader(llm, prompt, "thorough"), [question.text for question in QUESTIONS[:3]]
    contexts = [QUESTIONS[0].passages, (Passage.of("long", "amber " * 4000),), QUESTIONS[2].passages[:2]]
    together = reader.matrices(texts, contexts)
    assert calls == [sum(len(matrix.candidates) * len(matrix.written) for matrix in together)]
    assert (together[1].candidates, together[1].answer_logp_AN) == ((), None)  # its only call failed
    for matrix, text, passages in zip(together, texts, contexts, strict=True):
        (alone,) = reader.matrices([text], [passages])
        assert (matrix.written, matrix.candidates) == (alone.written, alone.candidates)
        if matrix.candidates:
            torch.testing.assert_close(matrix.answer_logp_AN, alone.answer_logp_AN, atol=1e-5, rtol=0)
