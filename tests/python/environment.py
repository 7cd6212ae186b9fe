#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Python environment of the tests: environment.py FOLDER

A virtual environment in FOLDER with the packages of PACKAGES, kept until the list changes. Prints its interpreter. PyTorch's
wheel names 2.5 GB of CUDA libraries, which a machine without a GPU never calls: small libraries of the same names and symbols,
whose functions return an error, stand in for them, so that the loader is content. What is tested is the real PyTorch.

Exits 1 with one line on standard error when the packages cannot be fetched: those tests are then skipped.
"""
import hashlib
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

TORCH = "torch==2.11.0"
# The runtime and the profiler's interface are small and real: PyTorch calls them even without a GPU.
CUDA = ["nvidia-cuda-runtime==13.0.*", "nvidia-cuda-cupti==13.0.*"]
PACKAGES = ["numpy", "setuptools<82", "sympy>=1.13.3", "networkx", "jinja2", "fsspec", "filelock", "typing_extensions",
            "pytest", "scikit-build-core>=0.10", "pathspec"]
# Without their dependencies, which name PyTorch again.
MODELS = ["diffusers==0.42.*", "transformers==5.24.*", "accelerate==1.15.*", "peft==0.21.*"]
MODEL_NEEDS = ["safetensors", "tokenizers", "huggingface_hub>=1.5", "pyyaml", "regex", "tqdm", "packaging", "psutil", "Pillow",
               "importlib_metadata", "requests"]

UNVERSIONED = re.compile(r"(cufile|cuFile|curand|nccl|cusparseLt)\w*$")


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", library))


def undefined(library):
    """(symbol, version or "") of what a library wants of others."""
    for word in re.findall(r" U (\S+)", run("nm", "-D", "--undefined-only", library)):
        symbol, _, version = word.partition("@")
        yield symbol, version.lstrip("@")


def make_stand_ins(torch_libraries, folder):
    """Libraries that satisfy what PyTorch's name and nobody provides."""
    wanted, symbols = set(), defaultdict(set)
    libraries = sorted(torch_libraries.glob("lib*.so*"))
    for library in libraries:
        wanted |= {name for name in needed(library) if re.match(r"lib(cu|nccl|nvshmem)", name)}
        for symbol, version in undefined(library):
            if version == "NVSHMEM" or (version in wanted or re.match(r"lib(cu|nccl)", version)):
                symbols[version].add(symbol)
            elif not version and UNVERSIONED.match(symbol):
                symbols[""].add(symbol)
    folder.mkdir(parents=True, exist_ok=True)
    present = {path.name for path in folder.iterdir()}
    for name in sorted(wanted - present - {path.name for path in libraries}):
        version = "NVSHMEM" if "nvshmem" in name else name
        own = sorted(symbols[version])
        loose = sorted(symbols[""]) if name.startswith("libnccl") else []
        source, script = folder / f"{name}.c", folder / f"{name}.map"
        source.write_text("".join(f"int {symbol}(void) {{ return 1; }}\n" for symbol in own + loose))
        script.write_text(f"{version} {{ global: {'; '.join(own or ['none'])}; }};\n" if own else "")
        versions = [f"-Wl,--version-script={script}"] if own else []
        run("gcc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{name}", *versions, "-o", folder / name, source)
        source.unlink()
        script.unlink()


def make(folder):
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    run(*pip, "--no-deps", "--only-binary", ":all:", TORCH, *CUDA, *MODELS)
    run(*pip, "--only-binary", ":all:", *PACKAGES, *MODEL_NEEDS)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip())
    make_stand_ins(site / "torch" / "lib", site / "nvidia" / "cu13" / "lib")
    run(python, "-c", "import torch, diffusers, transformers, peft, accelerate; assert not torch.cuda.is_available()")


def main():
    folder = Path(sys.argv[1]).resolve()
    stamp = folder / "made-by"
    key = hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode()).hexdigest()
    try:
        if not stamp.exists() or stamp.read_text() != key:
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            stamp.write_text(key)
    except (subprocess.CalledProcessError, OSError) as error:
        text = (getattr(error, "stderr", "") or str(error)).strip()
        print(f"no Python environment: {text.splitlines()[-1]}", file=sys.stderr)
        return 1
    print(folder / "bin" / "python")
    return 0


if __name__ == "__main__":
    sys.exit(main())
