"""A frozen generator's log P_G, computed once for each context and answer: the teacher of the relevance estimator.

Shape legend: M rows of a bucket, T tokens, A answer tokens.
"""

from collections.abc import Sequence
from hashlib import blake2b, sha256
from pathlib import Path

import torch
from torch import Tensor

from common.sealed_json import fingerprint
from datamodules.cache.number_store import FOLDER, NumberStore
from models.length_batching import IGNORE
from models.rerag.generator import Generator

FORMAT = 1  # of what is stored; increase it when a generator computes another log P_G of the same tokens


class FrozenGenerator:
    """Reads the log P_G that were computed before, and computes the others.

    A row is found by its tokens. So runs with other seeds, files or numbers of contexts find it, too, and a text that
    was changed for this epoch is computed anew.

    Args:
        generator: With frozen weights; computes in evaluation mode.
        cache: Folder of the cache; None keeps what is computed in memory.
        precision: What `generator` computes in, e.g. bf16-mixed.
    """

    def __init__(self, generator: Generator, cache: str | None, precision: str) -> None:
        self.generator = generator
        name = fingerprint([FORMAT, weights_digest(generator), precision])[:32]
        self.store = NumberStore(Path(cache) / FOLDER / name if cache is not None else None)

    @torch.no_grad()
    def __call__(self, ids_MT: Tensor, attention_MT: Tensor, labels_MA: Tensor) -> Tensor:
        """log P_G of one answer per context, nats, fp32: (M,).  Arguments as of `Generator`."""
        keys = _keys(ids_MT.cpu(), attention_MT.cpu(), labels_MA.cpu())
        found = self.store.found(keys)
        if missing := [row for row, number in enumerate(found) if number is None]:
            rows = torch.tensor(missing, device=ids_MT.device)
            training = self.generator.training
            self.generator.eval()  # without dropout
            logp = self.generator(ids_MT[rows], attention_MT[rows], labels_MA[rows]).float().tolist()
            self.generator.train(training)
            for row, number in zip(missing, logp, strict=True):
                found[row] = number
            self.store.add({keys[row]: number for row, number in zip(missing, logp, strict=True)})
        return torch.tensor(found, device=ids_MT.device)


def weights_digest(generator: Generator) -> str:
    """SHA-256 of the architecture and the frozen weights of a generator."""
    config = generator.network.config.to_dict()
    digest = sha256(fingerprint({**config, "_name_or_path": None}).encode())
    named = {name.replace(".base_layer.", "."): each for name, each in generator.named_parameters()}
    for name, parameter in sorted(named.items()):
        if not parameter.requires_grad:  # not of the estimator's adapter, where both have one base
            digest.update(name.encode())
            digest.update(parameter.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _keys(ids_MT: Tensor, attention_MT: Tensor, labels_MA: Tensor) -> Sequence[int]:
    """A 64-bit number for the tokens of each row, without its padding."""
    keys = []
    for ids_T, attention_T, labels_A in zip(ids_MT, attention_MT, labels_MA, strict=True):
        text, answer = ids_T[attention_T.bool()].tolist(), labels_A[labels_A != IGNORE].tolist()
        keys.append(int.from_bytes(blake2b(repr((text, answer)).encode(), digest_size=8).digest(), "little"))
    return keys
