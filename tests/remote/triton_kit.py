"""A live Triton, out of the wheel nvidia-pytriton, on a machine without a GPU.

    python tests/remote/triton_kit.py FOLDER

makes its virtual environment under FOLDER (a few hundred MB) with Debian's Python; the live tests look for it in the
folder that TRIMTAB_TRITON names, or in ~/.cache/trimtab-triton, and make it there if it is missing.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PYTHON = Path("/usr/bin/python3.11")
WHEEL = "nvidia-pytriton==0.7.0"
START_S = 90.0

MODEL = """
import json, time
import triton_python_backend_utils as utils

class TritonPythonModel:
    def initialize(self, arguments):
        self.seconds = float(json.loads(arguments["model_config"])["parameters"]["seconds"]["string_value"])

    def execute(self, requests):
        time.sleep(self.seconds)
        given = [utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [utils.InferenceResponse([utils.Tensor("y", x + x)]) for x in given]
"""

CONFIG = """
name: "twice"
backend: "python"
max_batch_size: %(size)d
input [{ name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }]
output [{ name: "y" data_type: TYPE_FP32 dims: [ -1 ] }]
instance_group [{ kind: KIND_CPU count: %(instances)d }]
dynamic_batching { max_queue_delay_microseconds: %(hold_us)d }
parameters { key: "seconds" value { string_value: "%(seconds)g" } }
"""


class Model(NamedTuple):
    """How the server runs the network: it takes ``run_ms`` a batch, whatever is in it."""

    instances: int
    run_ms: float
    hold_ms: float = 0.0
    size: int = 1


def home() -> Path:
    return Path(os.environ.get("TRIMTAB_TRITON", Path.home() / ".cache" / "trimtab-triton"))


def make(folder: Path) -> Path:
    """The virtual environment under ``folder``; made if it is not there. Raises CalledProcessError where it cannot."""
    python = folder / "bin" / "python"
    if not (folder / ".made").exists():
        subprocess.run([PYTHON, "-m", "venv", folder], check=True, capture_output=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", WHEEL], check=True, capture_output=True)
        server = _site(folder) / "pytriton" / "tritonserver"
        stub = server / "python_backend_stubs" / PYTHON.name.removeprefix("python") / "triton_python_backend_stub"
        shutil.copy(stub, server / "backends" / "python")  # where the server looks for the one of its Python
        (folder / ".made").touch()
    return folder


@contextmanager
def triton(environment: Path, model: Model, folder: Path) -> Iterator[str]:
    """A running server: the target to drive. In ``folder`` are its trace (trace.json) and its log (triton.log)."""
    grpc_port = _free_port()
    site = _site(environment)
    server = site / "pytriton" / "tritonserver"
    repository = _repository(folder / "models", model)
    command = [
        server / "bin" / "tritonserver", f"--model-repository={repository}",
        f"--backend-directory={server / 'backends'}", f"--grpc-port={grpc_port}", "--grpc-address=127.0.0.1",
        "--allow-http=false", "--allow-metrics=false", "--exit-timeout-secs=5",
        f"--trace-config=triton,file={folder / 'trace.json'}", "--trace-config=level=OFF",
    ]  # fmt: skip
    with (folder / "triton.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=_environment(environment, site))
        try:
            _await(process, grpc_port, folder / "triton.log")
            yield f"kserve-v2://127.0.0.1:{grpc_port}/twice"
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _repository(folder: Path, model: Model) -> Path:
    version = folder / "twice" / "1"
    version.mkdir(parents=True, exist_ok=True)
    (version / "model.py").write_text(MODEL)
    given = model._asdict() | {"hold_us": round(model.hold_ms * 1e3), "seconds": model.run_ms / 1e3}
    (folder / "twice" / "config.pbtxt").write_text(CONFIG % given)
    return folder


def _site(environment: Path) -> Path:
    return environment / "lib" / PYTHON.name / "site-packages"


def _environment(environment: Path, site: Path) -> dict[str, str]:
    return os.environ | {
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(site / "nvidia_pytriton.libs"),
        "PYTHONPATH": str(site),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise RuntimeError(f"Triton did not start:\n{log.read_text(errors='replace')[-3000:]}")


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
