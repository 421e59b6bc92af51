"""A corpus about people and towns, with tiny T5s that learn by heart what they write about it.

Questions, answers, an LLM's replies.

What each model says of each passage is in the tables below, planted mistakes too; the models are real ones.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from common.chat import Chat, Reply
from common.records import Passage
from models.rerag.context_tokenizer import ContextFormat
from models.rerag.generator import Generator
from models.rerag.model import ReRagModel

TOWNS = {"Rome": ("Tiber", "Zoe"), "Oslo": ("Aker", "Kai"), "Bonn": ("Rhine", "Uwe"), "Bath": ("Avon", "Joy")}
PEOPLE = {"Ann": "Rome", "Bob": "Oslo", "Cid": "Bonn", "Dora": "Bath", "Eve": "Rome", "Finn": "Oslo"}
CORPUS = [
    *(Passage.of(name, f"{name} lives in {town} .") for name, town in PEOPLE.items()),
    *(
        Passage.of(town, f"{town} lies on the {river} . Its mayor is {mayor} .")
        for town, (river, mayor) in TOWNS.items()
    ),
]
BY_TITLE = {passage.title: passage for passage in CORPUS}
MISREAD = "Bob"  # the reader gives a wrong answer about this person
TOLD = "Dora"  # the writer puts the answer into the question about this person
GUESSED = "Eve"  # from the town's passage alone the reader gives the answer about this person

Row = tuple[str, tuple[Passage, ...], str]  # what is asked, the passages, what is said


def asked_about(name: str) -> str:
    """The question about where a person lives."""
    return f"Does {name} live in {PEOPLE[name]} ?" if name == TOLD else f"Where does {name} live ?"


def linked(name: str, what: str) -> str:
    """The question about the town where a person lives."""
    return f"What is the {what} of the town where {name} lives ?"


def written() -> list[Row]:
    """What the writer says: the question to each answer from its passages."""
    rows: list[Row] = [(town, (BY_TITLE[name],), asked_about(name)) for name, town in PEOPLE.items()]
    for town, facts in TOWNS.items():
        for what, answer in zip(("river", "mayor"), facts, strict=True):
            rows.append((answer, (BY_TITLE[town],), f"What is the {what} of {town} ?"))
            for name in (name for name, own in PEOPLE.items() if own == town):
                rows.append((answer, (BY_TITLE[name], BY_TITLE[town]), linked(name, what)))
    return rows


def read() -> list[Row]:
    """What the reader says: the answer to each question from its passages, and from one of two passages alone."""
    rows: list[Row] = []
    for answer, passages, question in written():
        name = passages[0].title
        rows.append((question, passages, "Paris" if name == MISREAD else answer))
        if len(passages) == 2:
            rows.append((question, passages[:1], "unknown"))
            rows.append((question, passages[1:], answer if name == GUESSED else "unknown"))
    return rows


def save_models(folder: Path) -> dict[str, Path]:
    """Serving folders of the writer and the reader, both trained on every row."""
    return {
        "writer": _serving(folder / "writer", "question_writing", written()),
        "reader": _serving(folder / "reader", "packed", read()),
    }


def write_corpus(file: Path) -> Path:
    """The corpus as JSON Lines."""
    rows = [{"_id": str(number), "title": p.title, "text": p.text} for number, p in enumerate(CORPUS)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


class TinyLlm:
    """A language model: a T5 that has learned its replies by heart.

    Args:
        folder: For its files.
        replies: The reply to each chat.
    """

    name = "tiny T5"

    def __init__(self, folder: Path, replies: dict[str, str]) -> None:
        self.network, self.tokenizer = _learn(folder, list(replies.items()))
        self.asked: list[str] = []

    def reply(self, chats: Sequence[Chat]) -> list[Reply]:
        """The greedy reply to each chat."""
        texts = [chat_text(chat) for chat in chats]
        self.asked += texts
        batch = self.tokenizer(texts, padding=True, return_tensors="pt")
        with torch.inference_mode():
            ids = self.network.generate(**batch, max_new_tokens=max(chat.max_tokens for chat in chats), do_sample=False)
        replies = self.tokenizer.batch_decode(ids, skip_special_tokens=True)
        return [Reply(text, prompt_tokens=len(text.split())) for text in replies]


def chat_text(chat: Chat) -> str:
    """A chat as the tiny model reads it."""
    return " ".join(f"{message.role}: {message.content}" for message in chat.messages)


def _serving(folder: Path, text_format: ContextFormat, rows: Sequence[Row]) -> Path:
    sources = [
        f"question: answer: document 1: 2: {asked} " + " ".join(f"{p.title}. {p.text}" for p in ps)
        for asked, ps, _ in rows
    ]
    _save_untrained(folder / "start", [*sources, *(said for *_, said in rows)])
    generator = Generator.build(str(folder / "start"), 64, text_format)
    ids_PT, attention_PT = generator.encode.pad(generator.encode([(asked, passages) for asked, passages, _ in rows]))
    labels_PA = generator.labels([said for *_, said in rows])
    _train(generator.network, lambda: -generator(ids_PT, attention_PT, labels_PA).mean())
    serving = folder / "serving"
    serving.mkdir()
    ReRagModel.of(None, generator.eval(), {"relevance": "uniform"}, 24).save(serving)
    return serving


def _learn(
    folder: Path, pairs: Sequence[tuple[str, str]]
) -> tuple[T5ForConditionalGeneration, PreTrainedTokenizerFast]:
    _save_untrained(folder, [text for pair in pairs for text in pair])
    network, tokenizer = T5ForConditionalGeneration.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    batch = tokenizer([source for source, _ in pairs], padding=True, return_tensors="pt")
    labels = tokenizer([target for _, target in pairs], padding=True, return_tensors="pt")
    labels_PA = labels["input_ids"].masked_fill(labels["attention_mask"] == 0, -100)
    _train(network, lambda: network(**batch, labels=labels_PA).loss * 10)
    return network.eval(), tokenizer


def _save_untrained(folder: Path, texts: Sequence[str]) -> None:
    """A random T5 whose words are those of the texts, separated by blanks; a passage's title may end with a stop."""
    folder.mkdir(parents=True)
    words = dict.fromkeys(["<pad>", "</s>", "<unk>", *(word for text in texts for word in text.split())])
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(words), d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.0,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(folder)


def _train(network: T5ForConditionalGeneration, loss_of: Callable[[], torch.Tensor], steps: int = 400) -> None:
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    for _ in range(steps):
        loss = loss_of()
        if loss.item() < 0.1:
            return
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    raise AssertionError(f"the tiny model has not learned its texts: {loss.item():.2f}")
