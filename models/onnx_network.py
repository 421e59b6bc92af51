"""ONNX Runtime in the place of an encoder's torch network, from what `infer.py export` wrote beside its serving folder.

checkpoints/NAME/serving   the serving folder
checkpoints/NAME/onnx      its export, by --form onnx or onnx-int8, with the SHA-256 of the serving folder's manifest
"""

from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig
from transformers.modeling_outputs import SequenceClassifierOutput

from common.backends import by_onnx, tell
from common.errors import ArtifactError
from common.files import read_json
from common.packages import require
from models.serving_manifest import CURE, MANIFEST, manifest_sha256, read_manifest

FP32 = "model.onnx"
INT8 = {  # instruction set -> file; the last runs on every processor
    "avx512_vnni": "onnx/model_qint8_avx512_vnni.onnx",
    "avx2": "onnx/model_quint8_avx2.onnx",
}
FOLDER = "onnx"  # beside the serving folder
Part = TypeVar("Part", bound=Any)


class OnnxNetwork(nn.Module):
    """A session of ONNX Runtime, called as the network of transformers that it was exported from; CPU, one thread.

    Args:
        file: The export.
        config: Of the network.
    """

    device = torch.device("cpu")

    def __init__(self, file: Path, config: PreTrainedConfig) -> None:
        super().__init__()
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # batches are computed beside each other: `models.parallel_batches`
        self.file, self.config = file, config
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def forward(self, **inputs: Tensor) -> SequenceClassifierOutput:
        """Logits of token ids, attention mask and, where the export has them, token type ids, all (P, T) int64."""
        given = {each.name: inputs[each.name].numpy() for each in self.session.get_inputs()}
        logits = torch.from_numpy(self.session.run(None, given)[0])
        return SequenceClassifierOutput(logits=logits[:, None] if logits.dim() == 1 else logits)


def with_backend(part: Part, serving: Path) -> Part:
    """A loaded encoder of a serving folder; its network is ONNX Runtime's where `common.backends` says so.

    Of an int8 export the file for this processor is taken.

    Raises:
        UserError: If ONNX Runtime is not installed.
        ArtifactError: If the folder beside it holds no export, or that of another serving folder.
    """
    if not by_onnx():
        return part
    require("onnx", "--backend onnx")
    folder, own = serving.resolve().with_name(FOLDER), read_json(serving / MANIFEST, CURE)
    cure = f"Type python infer.py export --form onnx-int8 --serving {serving} --out {serving.parent / FOLDER}."
    if not (folder / MANIFEST).is_file():
        raise ArtifactError(f"--backend onnx: {folder} holds no export. {cure}")
    found = read_manifest(folder, f"{own['kind']}_onnx", own["text_format"])
    if found.get("serving_sha256") != manifest_sha256(serving):
        raise ArtifactError(f"--backend onnx: {folder} was not exported from {serving}. {cure}")
    capabilities = torch.cpu.get_capabilities()
    best = next(name for name in INT8 if capabilities.get(name) or name == [*INT8][-1])
    file = FP32 if FP32 in found["sha256"] else INT8[best]
    tell(str(folder / file), f"{folder / file}: computed by ONNX Runtime" + f", for {best}." * (file != FP32))
    part.network = OnnxNetwork(folder / file, part.network.config)
    part.inference_dtype, part.serving_sha256 = torch.float32, found["sha256"][file]
    return part
