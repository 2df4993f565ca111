"""A small KServe v2 server in this process: a real network behind gRPC, which can be told to fail.

It runs one request at a time, counts like Triton, and writes a trace like Triton's when it is told to trace. Requests
come with the number that the driver gave them, so a fault can be set for one of them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def need_client() -> None:
    """Skip a test module where the client is not installed; in CI it must be there."""
    if importlib.util.find_spec("tritonclient") is None and not os.environ.get("CI"):
        pytest.skip("tritonclient is not installed: pip install 'trimtab[remote]'", allow_module_level=True)


need_client()

import grpc  # noqa: E402 - after the check
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, save  # noqa: E402
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc  # noqa: E402

NETWORK = "twice"
KINDS = {np.dtype("float32"): "FP32", np.dtype("int64"): "INT64"}


def write_network(folder: Path) -> Path:
    """y[batch, width] = x[batch, width] + x[batch, width]"""
    value = helper.make_tensor_value_info
    shape = ["batch", "width"]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        NETWORK,
        [value("x", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, shape)],
    )
    path = folder / "twice.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


class KServe(service_pb2_grpc.GRPCInferenceServiceServicer):
    """``delay_s``: what each request takes besides. ``faults``: request number -> what goes wrong with it. ``trace``:
    the file whose numbered parts hold the trace; None: the server has no extension at all. ``answered``: called with
    each request's number before its answer goes."""

    def __init__(
        self, network: Path, trace: Path | None = None, faults: dict[int, str] | None = None, delay_s: float = 0.0
    ) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(network), options, providers=["CPUExecutionProvider"])
        self._trace, self._faults, self._delay_s = trace, faults or {}, delay_s
        self._one_at_a_time = threading.Lock()
        self._spans: list[dict[str, Any]] = []
        self._parts = 0
        self._tracing = False
        self._count = service_pb2.ModelStatistics(name=NETWORK)
        self.answered: Any = lambda number: None
        self.requests: list[str] = []
        self.datatype = "FP32"

    # --- the protocol -------------------------------------------------------------------------------------------

    def ServerMetadata(self, request: Any, context: Any) -> Any:
        extensions = [] if self._trace is None else ["statistics", "trace"]
        return service_pb2.ServerMetadataResponse(name="kit", version="1.2.3", extensions=extensions)

    def ModelReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ModelReadyResponse(ready=request.name == NETWORK)

    def ModelMetadata(self, request: Any, context: Any) -> Any:
        tensor = service_pb2.ModelMetadataResponse.TensorMetadata
        return service_pb2.ModelMetadataResponse(
            name=NETWORK,
            platform="onnxruntime_onnx",
            inputs=[tensor(name="x", datatype=self.datatype, shape=[-1, -1])],
            outputs=[tensor(name="y", datatype="FP32", shape=[-1, -1])],
        )

    def ModelConfig(self, request: Any, context: Any) -> Any:
        self._extended(context)
        config = model_config_pb2.ModelConfig(name=NETWORK, max_batch_size=4)
        config.instance_group.add(count=1)
        return service_pb2.ModelConfigResponse(config=config)

    def ModelStatistics(self, request: Any, context: Any) -> Any:
        self._extended(context)
        return service_pb2.ModelStatisticsResponse(model_stats=[self._count])

    def TraceSetting(self, request: Any, context: Any) -> Any:
        self._extended(context)
        self._tracing = bool(request.settings["trace_level"].value)
        if self._spans:
            assert self._trace is not None
            Path(f"{self._trace}.{self._parts}").write_text(json.dumps(self._spans))
            self._parts, self._spans = self._parts + 1, []
        return service_pb2.TraceSettingResponse()

    def ModelInfer(self, request: Any, context: Any) -> Any:
        came = time.monotonic_ns()
        number = int(request.id.rpartition("/")[2])
        fault = self._faults.get(number, "")
        if fault in ("INTERNAL", "UNAVAILABLE", "RESOURCE_EXHAUSTED"):
            self._count.inference_stats.fail.count += 1
            context.abort(getattr(grpc.StatusCode, fault), f"told to fail {number}")
        if fault == "slow":
            time.sleep(0.5)
        time.sleep(self._delay_s)
        with self._one_at_a_time:
            began = time.monotonic_ns()
            made = self._session.run(["y"], {"x": _inputs(request)["x"]})[0]
            ended = time.monotonic_ns()
            self._counted(came, began, ended)
            if self._tracing:
                self._spanned(request.id, came, began, ended)
        self.requests.append(request.id)
        self.answered(number)
        return _response(made, fault)

    # --- its own books ------------------------------------------------------------------------------------------

    def _extended(self, context: Any) -> None:
        if self._trace is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no extension")

    def _counted(self, came: int, began: int, ended: int) -> None:
        self._count.inference_count += 1
        self._count.execution_count += 1
        stats = self._count.inference_stats
        for stage, ns in ((stats.queue, began - came), (stats.compute_infer, ended - began)):
            stage.count += 1
            stage.ns += ns

    def _spanned(self, name: str, came: int, began: int, ended: int) -> None:
        number = len(self._spans) + 1_000 * self._parts
        times = (("REQUEST_START", came), ("QUEUE_START", came), ("COMPUTE_START", began), ("COMPUTE_END", ended))
        stamps = [{"name": point, "ns": ns} for point, ns in (*times, ("REQUEST_END", ended + 1))]
        self._spans.append({"id": number, "model_name": NETWORK, "request_id": name, "timestamps": stamps})


def _inputs(request: Any) -> dict[str, np.ndarray]:
    raw = zip(request.inputs, request.raw_input_contents, strict=True)
    return {tensor.name: np.frombuffer(data, "float32").reshape(tuple(tensor.shape)) for tensor, data in raw}


def _response(made: np.ndarray, fault: str) -> Any:
    """The answer, or one with something wrong."""
    response = service_pb2.ModelInferResponse(model_name=NETWORK)
    made = {"nan": made * np.nan, "empty": made[:, :0], "zero rows": made[:0]}.get(fault, made)
    name = "z" if fault == "other name" else "y"
    output = response.outputs.add(name=name, datatype=KINDS[made.dtype], shape=list(made.shape))
    if fault == "not raw":
        output.contents.fp32_contents.extend(made.reshape(-1).tolist())
        return response
    response.raw_output_contents.append(made.tobytes()[: -1 if fault == "short" else None])
    return response


class Served:
    """A server that listens: its ``port``, and ``stop`` for one that goes away."""

    def __init__(self, service: KServe, threads: int) -> None:
        self.service = service
        self._server = grpc.server(ThreadPoolExecutor(threads))
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(service, self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    @property
    def target(self) -> str:
        return f"kserve-v2://127.0.0.1:{self.port}/{NETWORK}"

    def stop(self) -> None:
        self._server.stop(None).wait()

    def stop_soon(self) -> None:
        """From within a request, which must not wait for itself."""
        threading.Thread(target=self.stop).start()


@contextmanager
def serving(service: KServe, threads: int = 4) -> Iterator[Served]:
    served = Served(service, threads)
    try:
        yield served
    finally:
        served.stop()
