"""Models and data that tests share, made in memory: no downloads, no GPU."""

import json
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("LIGHTNING_RAG_PRECISION", "fp32")  # on every CPU, so that results can be compared closely
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("WANDB_MODE", "offline")

import hypothesis
import pytest
import torch
from filelock import FileLock
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModel,
    BertConfig,
    BertModel,
    BigBirdConfig,
    BigBirdForSequenceClassification,
    LongformerConfig,
    LongformerForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5ForConditionalGeneration,
)

from common.garbage_collection import collect_less_often
from harness.indexing.sentence_encoder import SentenceEncoder
from tests.helpers.small_world import write_encoder
from tests.helpers.tiny_lm import save_chat_lm, save_plain_lm

hypothesis.settings.register_profile(
    "unhurried",
    deadline=None,  # a busy machine is no reason to fail
    max_examples=25,
    derandomize="CI" in os.environ,  # a change fails there for itself alone; elsewhere each run tries other examples
)
hypothesis.settings.load_profile("unhurried")

NAMES = [f"name{i}" for i in range(60)]
WORDS = [
    *["who", "where", "is", "was", "born", "the", "director", "film", "city", "of", "in", "yes", "no", "SEP", "CLS"],
    *".[]",
]
READING_WORDS = ["question", "context", "title", "document", "answer", ":", ",", "/", *"123456789"]
SENTINELS = [f"<extra_id_{i}>" for i in range(4)]
SIZES = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 128,
}  # fmt: skip

ENCODERS: dict[str, dict[str, Any]] = {  # options of families that are trained as they are; windows shorter than texts
    "modernbert": {"local_attention": 16, "classifier_pooling": "mean", "num_hidden_layers": 4},
    "mpnet": {},
    "deberta-v2": {
        "relative_attention": True, "position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"], "position_biased_input": False, "type_vocab_size": 0,
    },
}  # fmt: skip

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as a shell starts background jobs: Ctrl-C is tested all the same
    signal.signal(signal.SIGINT, signal.default_int_handler)
collect_less_often()  # as the commands do: a tenth of the time of all tests
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))  # 1 unless told: two test processes share the cores


def word_level(words: list[str], unknown: str) -> Tokenizer:
    """A tokenizer of whole words and punctuation marks."""
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    return tokenizer


def save_tokenizer(folder: Path, segments: bool = False) -> int:
    """A word-level BERT-like tokenizer, which joins pairs as BERT's does, and with `segments` numbers them; returns its
    vocabulary's size."""
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *NAMES]
    tokenizer = word_level(vocab, "[UNK]")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=128,
        model_input_names=["input_ids", *["token_type_ids"] * segments, "attention_mask"],
    ).save_pretrained(folder)  # fmt: skip
    return len(vocab)


def save_t5_tokenizer(folder: Path, words: tuple[str, ...] = ("true", "false")) -> int:
    """A word-level T5-like tokenizer, which ends every text with </s>; returns its vocabulary's size."""
    vocab = ["<pad>", "</s>", "<unk>", *SENTINELS, *words, *READING_WORDS, *WORDS, *NAMES]
    tokenizer = word_level(vocab, "<unk>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        extra_special_tokens=SENTINELS, model_max_length=512, model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)  # fmt: skip
    return len(vocab)


def save_t5(folder: Path, seed: int = 0) -> None:
    """A random T5 of two layers with `save_t5_tokenizer`'s tokenizer."""
    folder.mkdir()
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=save_t5_tokenizer(folder), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(folder)


def save_bert(folder: Path) -> None:
    """A random BERT of two layers with `save_tokenizer`'s tokenizer."""
    folder.mkdir()
    vocabulary = save_tokenizer(folder, segments=True)
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=vocabulary, **SIZES)).save_pretrained(folder)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with random models of some ten thousand parameters, by family."""
    root = tmp_path_factory.mktemp("pretrained")
    made = {"t5": root / "t5", "bert": root / "bert"}
    save_t5(made["t5"])
    save_bert(made["bert"])
    for family in ("big_bird", "roberta", "longformer"):
        folder = root / family
        folder.mkdir()
        vocabulary = save_tokenizer(folder)
        torch.manual_seed(0)
        if family == "big_bird":
            config = BigBirdConfig(vocab_size=vocabulary, attention_type="original_full", sep_token_id=3, **SIZES)
            BigBirdForSequenceClassification(config).save_pretrained(folder)
        elif family == "roberta":
            RobertaModel(RobertaConfig(vocab_size=vocabulary, pad_token_id=0, **SIZES)).save_pretrained(folder)
        else:
            config = LongformerConfig(
                vocab_size=vocabulary, pad_token_id=0, sep_token_id=3, attention_window=16,
                **{**SIZES, "max_position_embeddings": 130},
            )  # fmt: skip
            LongformerForSequenceClassification(config).save_pretrained(folder)
        made[family] = folder
    for family, options in ENCODERS.items():
        made[family] = root / family
        made[family].mkdir()
        vocabulary = save_tokenizer(made[family])
        torch.manual_seed(0)
        config = AutoConfig.for_model(family, vocab_size=vocabulary, pad_token_id=0, **{**SIZES, **options})
        AutoModel.from_config(config).save_pretrained(made[family])
    return made


Made = Callable[[str, Callable[[Path], Path]], Path]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Made:
    """Makes a folder in the first test process that asks for it by its name; the others wait, and share it."""
    here = tmp_path_factory.getbasetemp()
    shared = here.parent if hasattr(request.config, "workerinput") else here  # of all processes of this run

    def made(name: str, make: Callable[[Path], Path]) -> Path:
        with FileLock(shared / f"{name}.lock"):
            if not (shared / name).exists():
                make(shared / f"{name}.partial").rename(shared / name)
        return shared / name

    return made


@pytest.fixture(scope="session")
def chat_lm(made_once: Made) -> Path:
    """A causal LM with a chat template, trained on the task of `tests.helpers.tiny_lm`."""
    return made_once("chat_lm", save_chat_lm)


@pytest.fixture(scope="session")
def plain_lm(made_once: Made) -> Path:
    """A causal LM of another family without chat template and padding token, trained on the same task."""
    return made_once("plain_lm", save_plain_lm)


@pytest.fixture(scope="session")
def families(checkpoints: dict[str, Path], chat_lm: Path, plain_lm: Path) -> dict[str, Path]:
    """The folders of all models by their families."""
    return {**checkpoints, "chat": chat_lm, "plain": plain_lm}


def hotpot_rows(count: int, seed: int = 0) -> list[dict]:
    """Rows in HotpotQA's layout whose gold pair can be told from noise: both gold passages name the question's name."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        name, *others = rng.sample(NAMES, 8)
        context = [
            [f"{name} a{number}", [f"{name} was born in .", " the film ."]],
            [f"{name} b{number}", [f"{name} is the director ."]],
        ]
        context += [[f"{other} c{number}", [f"{other} was born in .", f" the director {other} ."]] for other in others]
        gold = [context[0][0], context[1][0]]
        rng.shuffle(context)
        rows.append(
            {
                "_id": f"q{seed}-{number}", "question": f"where was {name} born q {number}", "answer": name,
                "supporting_facts": [[title, 0] for title in gold], "context": context,
                "type": rng.choice(["bridge", "comparison"]), "level": "easy",
            }
        )  # fmt: skip
    return rows


@pytest.fixture
def hotpot_file(tmp_path: Path) -> Path:
    """Forty learnable questions in HotpotQA's layout."""
    path = tmp_path / "hotpot.json"
    path.write_text(json.dumps(hotpot_rows(40)))
    return path


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random sentence encoder on disk."""
    return write_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def encoder(encoder_folder: str) -> SentenceEncoder:
    """The same, loaded on the CPU."""
    return SentenceEncoder(encoder_folder, "cpu")


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An empty folder, which is the present one, for the tiny run of a trainer."""
    from tests.helpers.every_trainer import Place  # it imports this file

    return Place(tmp_path, request, monkeypatch)


@pytest.fixture
def workplace(place: Any, request: pytest.FixtureRequest) -> Path:
    """The present folder, with config.yaml and data of the tiny run of the trainer that the test's file names."""
    from tests.helpers.every_trainer import PREPARE  # it imports this file

    PREPARE[request.module.TRAINER](place)
    return place.folder
