"""What a network made from nothing can know before its first step: which words mean alike, and how to copy.

Shape legend: V vocabulary, H width of the T5, E width of the sentence encoder, T tokens.
"""

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerBase, T5ForConditionalGeneration

from models.pretrained import resolve

PIECES_PER_BATCH = 256
RANDOM_SHARE = 0.3  # length of the random part beside the meaning: pieces that mean the same stay two ("The" and "the")
ONE_BEFORE = 1  # T5's bucket of relative positions that holds -1
PREDECESSOR_BIAS = 6.0  # logit by which a head prefers it: 0.8 of its attention among a hundred tokens
MATCH_SCORE = 12.0  # logit of the token whose predecessor was written last, less what normalization takes of it


@torch.inference_mode()
def semantic_embeddings(tokenizer: PreTrainedTokenizerBase, encoder: str, width: int, seed: int = 0) -> Tensor:
    """An embedding per piece whose cosine says how alike a sentence encoder finds the two pieces' texts.

    The encoder's mean-pooled output for each piece on its own, reduced by principal components: static word vectors
    distilled from a contextual model, as in Model2Vec.  What is learnt of "teacher" then holds in part for "tutor", though
    the latter is in no training question.

    Args:
        tokenizer: Of the T5.
        encoder: Folder or hub id of an encoder-only sentence model, e.g. `models.pretrained.MINILM`.
        width: H; components beyond the encoder's own width E stay random.
        seed: Of the random part.

    Returns:
        (V, H), rows of length sqrt(H), as T5's initial ones have on average.

    Raises:
        MissingInputError: If there is no such encoder on this machine.
    """
    folder = str(resolve(encoder))
    words, network = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
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
def start_by_copying(network: T5ForConditionalGeneration, seed: int = 0) -> None:
    """Give a random T5 the circuit that copies names out of its context, which training takes long to find.

    Cross-attention hands over what it attends to unchanged (W_o W_v = 1), and T5's output layer is its embedding: the
    first step already proposes tokens of the context rather than random ones.  Half of the heads know how to go on: in the
    encoder they add to every token a rotated copy of the one before it, in the decoder they look for the token whose
    predecessor was written last, as induction heads do (Olsson et al., 2022).  To start attention as what it has become in
    trained networks is the idea of mimetic initialization (Trockman and Kolter, 2023).  All of it can be unlearnt.

    Args:
        network: A T5 whose heads have d_model dimensions together; changed in place.
        seed: Of the rotations.
    """
    config, generator = network.config, torch.Generator().manual_seed(seed)
    width, size = config.d_model, config.d_kv

    def rotation() -> Tensor:
        return torch.linalg.qr(torch.randn(width, width, generator=generator))[0]

    encoder = dict(network.encoder.named_parameters())
    decoder = dict(network.decoder.named_parameters())
    first = "block.0.layer.0.SelfAttention"
    crossing = [f"block.{n}.layer.1.EncDecAttention" for n in range(config.num_decoder_layers)]
    copied_HH = rotation()
    for layer in crossing:
        decoder[f"{layer}.v.weight"].copy_(copied_HH)
        decoder[f"{layer}.o.weight"].copy_(copied_HH.T)
    for head in range(config.num_heads // 2):
        rows = slice(head * size, (head + 1) * size)
        token, predecessor = rotation()[:size], rotation()[:size]  # (d_kv, H): where a head keeps the one and the other
        encoder[f"{first}.relative_attention_bias.weight"][ONE_BEFORE, head] = PREDECESSOR_BIAS
        encoder[f"{first}.q.weight"][rows] *= 0.1  # what the token is matters little to this head
        encoder[f"{first}.v.weight"][rows] = token
        encoder[f"{first}.o.weight"][:, rows] = predecessor.T
        for layer in crossing:
            scale = (MATCH_SCORE / size) ** 0.5
            decoder[f"{layer}.q.weight"][rows] = token * scale
            decoder[f"{layer}.k.weight"][rows] = predecessor * scale
