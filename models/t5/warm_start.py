"""Initialization of a random T5: word embeddings distilled from a sentence encoder, and attention heads that copy.

Shape legend: V vocabulary, H width of the T5, E width of the sentence encoder, T tokens.
"""

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModel, PreTrainedTokenizerBase, T5ForConditionalGeneration

from models.loading import load_network, load_tokenizer
from models.pretrained import resolve

PIECES_PER_BATCH = 256
RANDOM_SHARE = 0.3  # norm of the random part relative to the semantic part; keeps synonyms ("The", "the") distinct
PREVIOUS_TOKEN = 1  # T5's bucket for relative position -1
PREDECESSOR_BIAS = 6.0  # logit bias for the previous token: 0.8 of the attention among 100 tokens
MATCH_SCORE = 12.0  # logit of the token whose predecessor was generated last, before normalization reduces it


@torch.inference_mode()
def semantic_embeddings(tokenizer: PreTrainedTokenizerBase, encoder: str, width: int, seed: int = 0) -> Tensor:
    """Static word embeddings distilled from a sentence encoder, as in Model2Vec.

    The encoder's mean-pooled output for each piece alone, reduced by PCA, so that cosine similarity reflects meaning.
    What the T5 learns about "teacher" then partly transfers to "tutor", even if no training question contains it.

    Args:
        tokenizer: The T5's tokenizer.
        encoder: Folder or hub id of an encoder-only sentence model, e.g. `models.pretrained.MINILM`.
        width: H; components beyond the encoder's width E are random.
        seed: Seed of the random part.

    Returns:
        (V, H), rows of norm sqrt(H), the average norm of T5's random initialization.

    Raises:
        MissingInputError: If the encoder is not on this machine.
    """
    folder = str(resolve(encoder))
    words = load_tokenizer(folder)
    network = load_network(AutoModel, folder, dtype=torch.float32).eval()
    texts = [piece.strip("▁") or piece for piece in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))]
    pooled = []
    for start in range(0, len(texts), PIECES_PER_BATCH):
        batch = words(texts[start : start + PIECES_PER_BATCH], padding=True, return_tensors="pt")
        states_PTE, real_PT1 = network(**batch).last_hidden_state, batch["attention_mask"][:, :, None]
        pooled.append((states_PTE * real_PT1).sum(dim=1) / real_PT1.sum(dim=1))
    centred_VE = torch.cat(pooled)
    centred_VE = F.normalize(centred_VE - centred_VE.mean(dim=0))
    centred_VE -= centred_VE.mean(dim=0)
    _, _, components_EE = torch.linalg.svd(centred_VE, full_matrices=False)
    meaning_VH = F.normalize(centred_VE @ components_EE[:width].T)
    meaning_VH = F.pad(meaning_VH, (0, width - meaning_VH.shape[1]))
    noise_VH = torch.randn(meaning_VH.shape, generator=torch.Generator().manual_seed(seed))
    return F.normalize(meaning_VH + RANDOM_SHARE * F.normalize(noise_VH)) * width**0.5


@torch.no_grad()
def initialize_copy_heads(network: T5ForConditionalGeneration, seed: int = 0) -> None:
    """Initialize a random T5 so that it copies tokens from its context, which training takes long to find.

    Cross-attention passes on what it attends to unchanged (W_o W_v = 1), and T5's output layer is its embedding, so the
    network proposes tokens of the context from the first step.  Half of the heads form induction heads (Olsson et al.,
    2022): in the encoder they add to every token a rotated copy of the previous token, in the decoder they attend to
    the token whose predecessor was generated last.  It is a mimetic initialization (Trockman and Kolter, 2023).

    Args:
        network: A T5 whose heads have d_model dimensions in total; changed in place.
        seed: Seed of the random rotations.
    """
    config, generator = network.config, torch.Generator().manual_seed(seed)
    width, size = config.d_model, config.d_kv

    def rotation() -> Tensor:
        return torch.linalg.qr(torch.randn(width, width, generator=generator))[0]

    encoder = dict(network.encoder.named_parameters())
    decoder = dict(network.decoder.named_parameters())
    first = "block.0.layer.0.SelfAttention"
    cross_attention = [f"block.{n}.layer.1.EncDecAttention" for n in range(config.num_decoder_layers)]
    copied_HH = rotation()
    for layer in cross_attention:
        decoder[f"{layer}.v.weight"].copy_(copied_HH)
        decoder[f"{layer}.o.weight"].copy_(copied_HH.T)
    for head in range(config.num_heads // 2):
        rows = slice(head * size, (head + 1) * size)
        token, predecessor = rotation()[:size], rotation()[:size]  # projections of each, (d_kv, H)
        encoder[f"{first}.relative_attention_bias.weight"][PREVIOUS_TOKEN, head] = PREDECESSOR_BIAS
        encoder[f"{first}.q.weight"][rows] *= 0.1  # the head attends by position, hardly by content
        encoder[f"{first}.v.weight"][rows] = token
        encoder[f"{first}.o.weight"][:, rows] = predecessor.T
        for layer in cross_attention:
            scale = (MATCH_SCORE / size) ** 0.5
            decoder[f"{layer}.q.weight"][rows] = token * scale
            decoder[f"{layer}.k.weight"][rows] = predecessor * scale
