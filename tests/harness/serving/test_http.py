"""A system behind HTTP: what it answers is what it answers without, whoever asks at the same time.

A BM25 index with tiny, untrained models: DR-RAG's classifier, RE-RAG's estimator and generator.
"""

import asyncio
import json
import math
import random
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from openai import OpenAI
from starlette.testclient import TestClient

from common.errors import UnavailableError
from common.records import Answer, Asked, Passage, Ranked, as_questions
from harness.retrievers.bm25 import Bm25Retriever, build_bm25
from harness.retrievers.multi_query import MultiQueryRetriever
from harness.serving import app as app_module
from harness.serving.app import create_app
from harness.serving.parts import pairs_of, served_part, served_system
from harness.serving.worker import ServingLimits
from harness.systems.dmqr import Dmqr
from harness.systems.drrag import DrRag
from harness.systems.rerag import ReRag
from harness.systems.retrieve_read import RetrieveRead
from tests.helpers.browser import dumped, needs_chromium
from tests.helpers.http_server import listening
from tests.helpers.rerag_world import corpus, questions, write_serving
from tests.helpers.river_corpus import Digest
from tests.helpers.table_rewriter import TableRewriter

PASSAGES = corpus()
TEXTS = [question.text for question in questions(PASSAGES, 40)]
LIMITS = ServingLimits(wait_ms=20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, Path]) -> Path:
    root = tmp_path_factory.mktemp("served")
    build_bm25(PASSAGES, root / "bm25")
    write_serving(checkpoints["t5"], root / "serving")
    return root


@pytest.fixture(scope="module")
def rerag(folder: Path) -> ReRag:
    return ReRag(
        Bm25Retriever(folder / "bm25"), folder / "serving", candidates=6, contexts=3, device="cpu", precision="fp32"
    )


@pytest.fixture(scope="module")
def client(rerag: ReRag) -> Iterator[TestClient]:
    with serving(rerag) as found:
        yield found


def serving(system: Any, limits: ServingLimits = LIMITS) -> TestClient:
    return TestClient(create_app(served_system(system, limits), limits), raise_server_exceptions=False)


def posted(client: TestClient, path: str, **body: Any) -> Any:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """Without times, and without the tokens that a batch shares among its questions."""
    costs = {name: cost for name, cost in answer["costs"].items() if name in ("retriever_calls", "model_calls")}
    return {**answer, "costs": costs}


def test_one_at_a_time_the_answer_is_that_of_the_system_bit_for_bit(client: TestClient, rerag: ReRag) -> None:
    for text in TEXTS[:5]:
        (expected,) = rerag.answer(text)
        found = posted(client, "/ask", question=text)
        assert found.pop("question") == text
        assert comparable(found) == comparable(json.loads(json.dumps(asdict(expected))))
    several = posted(client, "/ask", question=TEXTS[:3])
    assert [each["question_id"] for each in several] == ["1", "2", "3"]
    assert [each["text"] for each in several] == [rerag.answer(text)[0].text for text in TEXTS[:3]]
    # earlier turns are part of a question
    found = posted(client, "/ask", question=TEXTS[0], history=[TEXTS[1]])
    assert found["text"] == rerag.answer(f"{TEXTS[1]} {TEXTS[0]}")[0].text
    turns = ("system", "Be brief."), ("user", TEXTS[1]), ("user", TEXTS[0])
    chat = [{"role": role, "content": text} for role, text in turns]
    replied = posted(client, "/v1/chat/completions", messages=chat)
    assert replied["choices"][0]["message"]["content"] == found["text"]
    # stages are told as they end, and then the answer
    (first, evidence), (last, answer) = events(client, TEXTS[0])
    (expected,) = rerag.answer(TEXTS[0])
    assert (first, last, evidence["stage"]) == ("stage", "answer", "evidence")
    assert {hit["id"] for hit in evidence["evidence"]} == {hit.passage.id for hit in expected.evidence}
    assert answer["text"] == expected.text


def test_of_many_clients_each_gets_its_own_answer(client: TestClient, rerag: ReRag) -> None:
    asked = [random.Random(1).choice(TEXTS) for _ in range(96)]
    with ThreadPoolExecutor(32) as pool:
        found = [*pool.map(lambda text: posted(client, "/ask", question=text), asked)]
    for text, answer in zip(asked, found, strict=True):
        (expected,) = rerag.answer(text)
        assert answer["text"] == expected.text
        assert [hit["passage"]["id"] for hit in answer["evidence"]] == [hit.passage.id for hit in expected.evidence]
        scores = [hit.score for hit in expected.evidence]
        assert [hit["score"] for hit in answer["evidence"]] == pytest.approx(scores, abs=1e-5)
    batches = re.findall(r'rag_batch_requests_(sum|count)\{work="ask"\} (\S+)', client.get("/metrics").text)
    counted = {name: float(value) for name, value in batches}
    assert counted["sum"] >= 2 * counted["count"]  # they shared batches


def test_search_gives_the_retrievers_passages(client: TestClient, rerag: ReRag) -> None:
    asked = [(text, k) for text in TEXTS[:8] for k in (2, 5)]
    with ThreadPoolExecutor(16) as pool:
        found = [*pool.map(lambda one: posted(client, "/search", query=one[0], k=one[1])["results"], asked)]
    for (text, k), hits in zip(asked, found, strict=True):
        (expected,) = rerag.retriever.search([text], k)  # type: ignore[union-attr]
        assert [(hit["id"], hit["score"]) for hit in hits] == [(hit.passage.id, hit.score) for hit in expected]
    lists = posted(client, "/search", query=TEXTS[:2], k=3)
    assert [len(each["results"]) for each in lists] == [3, 3]


def test_rerank_has_the_shapes_of_other_servers(client: TestClient, rerag: ReRag) -> None:
    texts = [passage.text for passage in PASSAGES[:5]]
    logits = rerag.model.estimator.scores([(TEXTS[0], passage) for passage in map(_untitled, texts)])  # type: ignore[union-attr]
    best = sorted(range(5), key=lambda place: -logits[place])
    found = posted(client, "/rerank", query=TEXTS[0], texts=texts, raw_scores=True, return_text=True)
    assert [(each["text"], each["index"]) for each in found] == [(texts[place], place) for place in best]
    assert [each["score"] for each in found] == pytest.approx([logits[place] for place in best], abs=1e-5)
    for path in ("/rerank", "/v1/rerank", "/v2/rerank"):
        results = posted(client, path, model="any", query=TEXTS[0], documents=texts, top_n=2)["results"]
        assert [each["index"] for each in results] == best[:2]
        sigmoids = [1 / (1 + math.exp(-logits[place])) for place in best[:2]]
        assert [each["relevance_score"] for each in results] == pytest.approx(sigmoids, abs=1e-5)
    titled = [{"title": passage.title, "text": passage.text} for passage in PASSAGES[:2]]
    results = posted(client, "/rerank", query="where", documents=titled, return_documents=True)["results"]
    assert {each["document"]["text"] for each in results} == {each["text"] for each in titled}


def test_no_text_fails_a_request(client: TestClient) -> None:
    """An empty one comes last; the others have the scores that they have without it."""
    odd = {"empty": "", "invisible": " \u200b ", "long": "x " * 20_000, "half": "a\ud800"}
    texts = [PASSAGES[0].text, *odd.values(), PASSAGES[1].text]
    content = json.dumps({"query": TEXTS[0], "texts": texts, "raw_scores": True})
    response = client.post("/rerank", content=content, headers={"content-type": "application/json"})
    found = {each["index"]: each["score"] for each in response.json()}
    assert [*found][-2:] == [1, 2]
    assert (found[1], found[2]) == (-30, -30)
    alone = posted(client, "/rerank", query=TEXTS[0], texts=[texts[0], texts[5]], raw_scores=True)
    assert {0: found[0], 1: found[5]} == pytest.approx({each["index"]: each["score"] for each in alone}, abs=1e-5)
    nothing = posted(client, "/rerank", query="x", documents=[{"text": "", "url": "x", "title": None}, " "])["results"]
    assert [each["index"] for each in nothing] == [0, 1]
    further = [{"text": text, "url": "https://example.org", "id": 1, "tags": ["a"]} for text in (texts[0], texts[5])]
    results = posted(client, "/v2/rerank", query=TEXTS[0], documents=further, max_tokens_per_doc=5)["results"]
    assert [each["index"] for each in results] == [each["index"] for each in alone]
    assert "documents.0" in client.post("/rerank", json={"query": "x", "documents": [{"url": "x"}]}).text


def test_a_later_text_is_paired_with_the_first_and_its_window() -> None:
    assert pairs_of(0) == []
    for count in (1, 2, 50, 51, 80, 95):
        partners = {place: {0} if count == 1 else set[int]() for place in range(count)}
        pairs = pairs_of(count)
        assert len(pairs) == len({*pairs})
        for one, two in pairs:
            partners[one].add(two)
            partners[two].add(one)
        for place in range(count):
            window = range(50) if place < 50 else range(place - (place - 50) % 30, place - (place - 50) % 30 + 30)
            wanted = {each for each in (*range(20), *window) if each < count and each != place} or {0}
            assert partners[place] >= wanted
            assert place < 20 or partners[place] == wanted


def _untitled(text: str) -> Passage:
    return Passage.of("", text)


def test_a_part_alone_reranks_and_a_system_without_one_says_so(folder: Path) -> None:
    with TestClient(create_app(served_part(folder / "serving", LIMITS, "cpu", "fp32"), LIMITS)) as alone:
        assert len(posted(alone, "/rerank", query="where", texts=["one", "two"])) == 2
        assert alone.post("/ask", json={"question": "where"}).status_code == 404
        assert alone.get("/health").json()["parts"] == ["rerank"]
    system = DrRag(Bm25Retriever(folder / "bm25"), scorer=Digest())  # type: ignore[arg-type]
    with serving(system) as pairs:
        documents = [passage.text for passage in PASSAGES[:4]]
        found = posted(pairs, "/rerank", query="where", texts=documents)
        pairs_of = [*combinations(documents, 2)]
        triples = [("where", _untitled(one), _untitled(two)) for one, two in pairs_of]
        scores = dict(zip(pairs_of, Digest().probabilities(triples), strict=True))
        best = {each: max(score for pair, score in scores.items() if each in pair) for each in documents}
        assert [each["score"] for each in found] == pytest.approx(sorted(best.values(), reverse=True))
        low = min(scores, key=scores.__getitem__)  # below one half: its log-odds are negative
        found = posted(pairs, "/rerank", query="where", texts=[*low])
        assert [each["score"] for each in found] == pytest.approx([scores[low]] * 2)
        (alone,) = posted(pairs, "/rerank", query="x", texts=["one"])  # is paired with itself
        assert alone["score"] == pytest.approx(Digest().probabilities([("x", _untitled("one"), _untitled("one"))])[0])
        assert len(posted(pairs, "/rerank", query="x", texts=[f"text {n}" for n in range(120)])) == 120
        assert pairs.post("/rewrite", json={"question": "where"}).status_code == 404
        assert "no reader" in pairs.post("/v1/chat/completions", json=CHAT).json()["error"]["message"]


def test_a_rewriters_queries_are_given(folder: Path) -> None:
    rewriter = TableRewriter({TEXTS[0]: {"gqr": ["born where"]}})
    system = Dmqr(Bm25Retriever(folder / "bm25"), rewriter, ("gqr",), fusion="rrf")
    with serving(system) as found:
        assert posted(found, "/rewrite", question=TEXTS[0])["queries"] == {"gqr": ["born where"]}
        wrong = found.post("/rewrite", json={"question": TEXTS[0], "strategies": ["none"]})
        assert wrong.status_code == 422
        assert "'none' is none of gqr" in wrong.json()["error"]["message"]
        assert [name for name, _ in events(found, TEXTS[0])] == ["stage", "answer"]


def test_nobody_is_told_of_the_questions_of_others(folder: Path) -> None:
    """A retriever with several queries within a system has questions of its own, whose ids are nobody's."""
    inner = MultiQueryRetriever(Bm25Retriever(folder / "bm25"), TableRewriter({}), ("gqr",), fusion="rrf")
    with serving(RetrieveRead(inner), ServingLimits(wait_ms=300)) as found, ThreadPoolExecutor(2) as pool:
        told = [*pool.map(lambda text: events(found, text), TEXTS[:2])]
    for text, other, each in zip(TEXTS[:2], TEXTS[1::-1], told, strict=True):
        assert text in str(each)
        assert other not in str(each)


CHAT = {"messages": [{"role": "user", "content": "where"}]}


def events(client: TestClient, question: str) -> list[tuple[str, Any]]:
    text = client.post("/ask", json={"question": question, "stream": True}).text
    pairs = [block.split("\n") for block in text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in pairs]


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/ask", {}, "question: Field required"),
        ("/ask", {"question": " \u200b "}, "question: is empty"),
        ("/ask", {"question": "x" * 40_000}, "question: String should have at most 32768 characters"),
        ("/ask", {"question": "x", "k": 3}, "k: Extra inputs are not permitted"),
        ("/ask", {"question": ["x", "y"], "stream": True}, "give question as a text"),
        ("/ask", {"question": "x", "passages": [{"text": "y"}]}, "passages: this system retrieves by itself"),
        ("/search", {"query": ["x"] * 60, "k": 1000}, "k: 60 queries times 1000 passages"),
        ("/search", {"query": "x", "k": 0}, "k: Input should be greater than or equal to 1"),
        ("/rerank", {"query": "x"}, "give texts or documents"),
        ("/rerank", {"query": "x", "texts": ["a", 5]}, "texts.1: Input should be a valid string"),
        ("/ask", {"question": None}, "question: "),
        ("/ask", {"question": "x", "k": None}, "k: Extra inputs are not permitted"),
        ("/v1/chat/completions", {"messages": [{"role": "assistant", "content": "x"}]}, "last message"),
        ("/v1/chat/completions", {**CHAT, "n": 2}, "n: "),
    ],
)
def test_a_mistake_is_named(client: TestClient, path: str, body: dict[str, Any], message: str) -> None:
    response = client.post(path, json=body)
    assert response.status_code == 422
    assert message in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/ask", {"question": "where", "history": None, "passages": None, "stream": None}),
        ("/search", {"query": "where", "k": None}),
        ("/rerank", {"query": "x", "texts": ["a"], "documents": None, "top_n": None, "raw_scores": None,
                     "return_text": None, "return_documents": None, "scores": None, "model": None}),
        ("/rerank", {"query": "x", "documents": [{"text": "a", "title": None}]}),
        ("/v1/chat/completions", {**CHAT, "stream": None, "stream_options": None, "n": None, "tools": None}),
        ("/v1/chat/completions", {**CHAT, "stream_options": {"include_usage": None}}),
    ],
)  # fmt: skip
def test_null_for_a_default_is_the_default(client: TestClient, path: str, body: dict[str, Any]) -> None:
    given = {name: value for name, value in body.items() if value is not None}
    found, expected = posted(client, path, **body), posted(client, path, **given)
    for each in (found, expected) if isinstance(found, dict) else ():
        for volatile in ("id", "created", "costs"):
            each.pop(volatile, None)
    assert found == expected


def test_head_is_get_without_a_body(client: TestClient) -> None:
    for path in ("/", "/health", "/ready", "/metrics", "/v1/models", "/openapi.json", "/ask", "/none", "/mcp"):
        found = client.head(path)  # also of a stream of events, which has no end
        assert found.content == b""
        assert path == "/mcp" or found.status_code == client.get(path).status_code, path
    for path in ("/health", "/"):
        assert client.head(path).headers["content-length"] == client.get(path).headers["content-length"]


@pytest.mark.parametrize(
    ("body", "code"), [(b"{", 422), (b" " * 2**21, 413), ([b" " * 2**19] * 3, 413)], ids=["no JSON", "large", "chunks"]
)
def test_a_body_that_is_no_json_or_too_large_is_refused(client: TestClient, body: Any, code: int) -> None:
    sent = body if isinstance(body, bytes) else iter(body)
    response = client.post("/ask", content=sent, headers={"content-type": "application/json"})
    assert response.status_code == code
    assert code == 413 or response.json()["error"]["message"] == "the body is no JSON"


NOTED = Answer("1", "", (), notes={"error": "the service is down"})  # of a system that has answered others


class Slow:
    """A system whose questions take time, fail, or have a service that fails."""

    def answer(self, asked: Asked) -> list[Answer]:
        questions = as_questions(asked)
        for each in questions:
            time.sleep(float(each.text) if each.text.replace(".", "").isdigit() else 0)
            if "down" in each.text:
                raise UnavailableError("the service is down")
            if "bug" in each.text:
                raise KeyError("a secret of the program")
        found = [Answer(each.id, f"asked {each.text}", (Ranked(PASSAGES[0], float("inf")),)) for each in questions]
        return [NOTED if each.text == "asked noted" else each for each in found]


@pytest.fixture(scope="module")
def slow() -> Iterator[TestClient]:
    with serving(Slow(), ServingLimits(requests=3, batch_questions=1, wait_ms=0, seconds=1.5)) as found:
        yield found


def test_a_failure_is_of_its_question_alone(slow: TestClient) -> None:
    with ThreadPoolExecutor(3) as pool:
        asked = [*pool.map(lambda text: slow.post("/ask", json={"question": text}), ["down", "bug", "fine"])]
    assert [each.status_code for each in asked] == [502, 500, 200]
    assert asked[0].json()["error"]["message"] == "the service is down"
    assert not {"secret", "Traceback"} & {*re.findall(r"\w+", asked[1].text)}
    assert asked[2].json()["evidence"][0]["score"] is None  # JSON has no infinity
    answered = slow.post("/ask", json={"question": "noted"})
    assert (answered.status_code, answered.json()["error"]["message"]) == (502, "the service is down")
    several = slow.post("/ask", json={"question": ["down", "fine"]}).json()
    assert [each["text"] for each in several] == ["", "asked fine"]
    assert several[0]["error"] == "the service is down"


def test_too_many_and_too_slow(slow: TestClient) -> None:
    with ThreadPoolExecutor(12) as pool:
        asked = [*pool.map(lambda _: slow.post("/ask", json={"question": "0.4"}), range(12))]
        streamed = [pool.submit(slow.post, "/ask", json={"question": "0.4", "stream": True}) for _ in range(8)]
    assert {each.result().status_code for each in streamed} == {200, 429}
    codes = [each.status_code for each in asked]
    assert {*codes} == {200, 429}
    assert codes.count(200) == 3
    assert all(int(each.headers["retry-after"]) >= 1 for each in asked if each.status_code == 429)
    assert slow.post("/ask", json={"question": ["a", "b", "c", "d"]}).status_code == 422  # more than it ever takes
    late = slow.post("/ask", json={"question": "2.5"})
    assert late.status_code == 504
    assert "within 1.5 s" in late.json()["error"]["message"]
    time.sleep(1.2)
    assert slow.post("/ask", json={"question": "fine"}).status_code == 200


def test_a_key_and_the_names_of_the_machine(rerag: ReRag) -> None:
    app = create_app(served_system(rerag, LIMITS), LIMITS, "secret", ("127.0.0.1", "localhost"))
    with TestClient(app, base_url="http://127.0.0.1:80") as found:
        for key, code in (("", 401), ("Bearer other", 401), ("Bearer secret", 200)):
            headers = {"authorization": key} if key else {}
            assert found.post("/search", json={"query": "where"}, headers=headers).status_code == code
        assert found.get("/health").status_code == found.get("/").status_code == 200
        assert found.get("/metrics").status_code == 401
        assert found.get("/health", headers={"host": "evil.example"}).status_code == 421
        assert found.get("/health", headers={"host": "LOCALHOST:8000"}).status_code == 200
        assert found.post("/mcp", json={}).status_code == 401


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "question", "query", "history", "passages", "stream", "k", "strategies", "texts", "documents", "top_n",
    "raw_scores", "return_text", "return_documents", "model", "messages", "n", "tools", "text", "title", "role",
    "stream_options", "include_usage", "content", "jsonrpc", "method", "params", "id",
]  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(FIELDS), JSON | st.just("where") | st.just(["a", "b"]), max_size=5) | JSON)
def test_no_request_makes_a_route_fail(client: TestClient, body: Any) -> None:
    text = json.dumps(body).encode()
    for path in ("/ask", "/search", "/rerank", "/v2/rerank", "/rewrite", "/v1/chat/completions", "/mcp"):
        response = client.post(path, content=text, headers={"content-type": "application/json"})
        assert response.status_code < 500, (path, body, response.text)
        assert "Traceback" not in response.text
    for path in ("/", "/health", "/ready", "/metrics", "/v1/models"):
        assert client.get(path, params={"x": text[:50]}).status_code == 200


def test_openais_client_asks(client: TestClient, rerag: ReRag) -> None:
    with listening(create_app(served_system(rerag, LIMITS), LIMITS)) as address:
        openai = OpenAI(base_url=f"{address}/v1", api_key="none")
        (expected,) = rerag.answer(TEXTS[0])
        messages: Any = [{"role": "user", "content": TEXTS[0]}]
        said = openai.chat.completions.create(model="ReRag", messages=messages, temperature=0)
        assert said.choices[0].message.content == expected.text
        stream = openai.chat.completions.create(model="ReRag", messages=messages, stream=True)
        assert "".join(each.choices[0].delta.content or "" for each in stream) == expected.text
        counted = {"stream": True, "stream_options": {"include_usage": True}}
        *chunks, last = openai.chat.completions.create(model="ReRag", messages=messages, **counted)
        assert [(each.usage, len(each.choices)) for each in chunks] == [(None, 1)] * 2
        assert (last.choices, last.usage) == ([], said.usage)
        assert said.usage.completion_tokens > 0
        assert said.usage.total_tokens == said.usage.prompt_tokens + said.usage.completion_tokens
        assert [each.id for each in openai.models.list()] == ["ReRag"]
        asyncio.run(_over_http(f"{address}/mcp", rerag))


async def _over_http(address: str, rerag: ReRag) -> None:
    async with Client(address) as found:
        assert {tool.name for tool in (await found.list_tools()).tools} == {"search", "ask"}
        told = await found.call_tool("ask", {"question": TEXTS[0]})
        assert told.structured_content["text"] == rerag.answer(TEXTS[0])[0].text  # type: ignore[index]
        hits = (await found.call_tool("search", {"query": TEXTS[0], "k": 2})).structured_content["passages"]  # type: ignore[index]
        assert [hit["id"] for hit in hits] == [hit.passage.id for hit in rerag.retriever.search([TEXTS[0]], 2)[0]]  # type: ignore[union-attr]
        assert (await found.call_tool("ask", {"question": " "})).is_error


@needs_chromium
def test_a_person_asks_on_the_page(rerag: ReRag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser shows its document once an image has come, which comes after the answer."""
    (expected,) = rerag.answer(TEXTS[0])
    asking = f"byId('question').value = {json.dumps(TEXTS[0])}; byId('form').requestSubmit();"
    page = tmp_path / "page.html"
    written = app_module.PAGE.read_text(encoding="utf-8")
    page.write_text(written.replace("</body>", f"<img src=late><script>{asking}</script></body>"), encoding="utf-8")
    monkeypatch.setattr(app_module, "PAGE", page)
    policy = app_module.SECURE["content-security-policy"]
    monkeypatch.setitem(app_module.SECURE, "content-security-policy", policy.replace("img-src", "img-src 'self'"))
    app = create_app(served_system(rerag, LIMITS), LIMITS)

    @app.get("/late")
    async def late() -> None:
        metrics = app.state.backend.metrics
        while not metrics.registry.get_sample_value("rag_requests_total", {"route": "/ask", "status": "200"}):
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)

    with listening(app) as address:
        shown = dumped(f"{address}/", tmp_path)
    assert 'class="answer"' in shown, shown[-3000:]
    assert all(hit.passage.text in shown for hit in expected.evidence)
    assert "Stage: evidence, 3 passages" in shown
