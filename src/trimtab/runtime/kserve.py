"""The KServe v2 protocol over gRPC: one model of one server, asked what it is, sent requests, read for its counters.

Only what the protocol itself has is needed to drive a server. Counters, the model's configuration and the server's own
trace are extensions: where a server has none, that is told and nothing stands in for it. The client's package is
imported when a connection is made.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable
from typing import Any, NamedTuple

from trimtab.domain.events import ErrorKind
from trimtab.domain.ports import Arrays
from trimtab.domain.remote import Counters, Server, Target
from trimtab.domain.study import ModelSpec
from trimtab.errors import MissingTool, RunError
from trimtab.runtime._tensors import encoded, mismatch

PACKAGES = ("tritonclient", "grpcio")
ASK_S = 10.0
"""How long a question about the server may take, s."""
TRACED = 50_000
"""Requests that a server traces before it starts another file."""
_KINDS: dict[str, ErrorKind] = {
    "UNAVAILABLE": "unavailable",
    "DEADLINE_EXCEEDED": "timeout",
    "CANCELLED": "timeout",
    "RESOURCE_EXHAUSTED": "rejected",
}
_TRACE = ("trace_level", "trace_rate", "trace_count", "log_frequency")


class Failed(NamedTuple):
    """Why a request has no answer."""

    kind: ErrorKind
    message: str


class _Client(NamedTuple):
    grpc: Any
    messages: Any
    services: Any


def versions() -> dict[str, str]:
    """Versions of the client. MissingTool where it is not installed."""
    _client()
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def _client() -> _Client:
    names = ("grpc", "tritonclient.grpc.service_pb2", "tritonclient.grpc.service_pb2_grpc")
    try:
        return _Client(*(importlib.import_module(name) for name in names))
    except ImportError as error:
        raise MissingTool(
            f"a client for KServe v2 is not installed: {error}",
            where="workload.target",
            fix="pip install 'trimtab[remote]'",
        ) from error


class Connection:
    """One model of one server. Close it; nothing is sent before it is asked for."""

    def __init__(self, target: Target) -> None:
        client = _client()
        self.target = target
        self._grpc, self._pb = client.grpc, client.messages
        limits = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        self._channel = client.grpc.insecure_channel(target.address, options=[*limits, ("grpc.enable_retries", 0)])
        self._stub = client.services.GRPCInferenceServiceStub(self._channel)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exit_: object) -> None:
        self._channel.close()

    # --- what the server is -------------------------------------------------------------------------------------

    def server(self) -> Server:
        """What it says of itself. RunError where it cannot be reached, or the model is not ready."""
        said = self._ask("ServerMetadata", self._pb.ServerMetadataRequest())
        if not self._ask("ModelReady", self._pb.ModelReadyRequest(**self._named)).ready:
            raise RunError(
                f"the model {self.target.model!r} is not ready", where=str(self.target), fix="load it, or wait for it"
            )
        config = self._extension("ModelConfig", self._pb.ModelConfigRequest(**self._named))
        platform = self._metadata().platform
        told = Server(name=said.name, version=said.version, extensions=tuple(said.extensions), platform=platform)
        return told if config is None else _configured(told, config.config)

    def check(self, spec: ModelSpec) -> None:
        """ModelError where the server's model does not take and give what the study says."""
        mismatch(spec, self._metadata(), str(self.target))

    def counters(self) -> Counters | None:
        """What the server has counted of this model so far, over all of its versions that answer to the target; None
        where it does not count."""
        found = self._extension("ModelStatistics", self._pb.ModelStatisticsRequest(**self._named))
        if found is None or not found.model_stats:
            return None
        return _counters(found.model_stats)

    def trace(self) -> None:
        """From now on the server traces every request of the model. Where it writes to cannot be set from here.

        RunError where it has no such extension.
        """
        on = {"trace_level": "TIMESTAMPS", "trace_rate": "1", "trace_count": "-1", "log_frequency": str(TRACED)}
        self._set_tracing({name: [value] for name, value in on.items()})

    def stop_tracing(self) -> None:
        """The model follows the server's own settings again; what was traced is written."""
        self._set_tracing({name: [] for name in _TRACE})

    def _set_tracing(self, settings: dict[str, list[str]]) -> None:
        request = self._pb.TraceSettingRequest(model_name=self.target.model)
        for name, values in settings.items():
            request.settings[name].SetInParent()
            request.settings[name].value.extend(values)
        try:
            self._stub.TraceSetting(request, timeout=ASK_S)
        except self._grpc.RpcError as error:
            failed = self.failed(error)
            raise RunError(
                f"the server cannot be told to trace: {failed.message}",
                where=f"{self.target}; workload.target_trace",
                fix="start it with a trace file (Triton: --trace-config triton,file=...), or remove target_trace",
            ) from error

    def _metadata(self) -> Any:
        return self._ask("ModelMetadata", self._pb.ModelMetadataRequest(**self._named))

    @property
    def _named(self) -> dict[str, str]:
        return {"name": self.target.model, "version": self.target.version}

    def _ask(self, question: str, request: Any) -> Any:
        try:
            return getattr(self._stub, question)(request, timeout=ASK_S)
        except self._grpc.RpcError as error:
            failed = self.failed(error)
            raise RunError(
                f"the server does not answer {question}: {failed.message}",
                where=str(self.target),
                fix="check that it runs, its gRPC port, and the model's name",
            ) from error

    def _extension(self, question: str, request: Any) -> Any:
        """The same for what a server need not have; None where it has not."""
        try:
            return getattr(self._stub, question)(request, timeout=ASK_S)
        except self._grpc.RpcError as error:
            if error.code().name in ("UNIMPLEMENTED", "NOT_FOUND", "INVALID_ARGUMENT"):
                return None
            raise RunError(
                f"the server does not answer {question}: {self.failed(error).message}",
                where=str(self.target),
                fix="check that it still runs",
            ) from error

    # --- requests -----------------------------------------------------------------------------------------------

    def message(self, spec: ModelSpec, arrays: Arrays) -> Any:
        """One request, ready to be sent; its id is set when it is."""
        request = self._pb.ModelInferRequest(model_name=self.target.model, model_version=self.target.version)
        for item in spec.inputs:
            datatype, shape, raw = encoded(item, arrays)
            request.inputs.add(name=item.name, datatype=datatype, shape=shape)
            request.raw_input_contents.append(raw)
        for output in spec.outputs:
            request.outputs.add(name=output.name)
        return request

    def send(self, message: Any, timeout_s: float, then: Callable[[Any], None]) -> Any:
        """Hand ``message`` to the channel and return at once; ``then`` gets the call when it has ended, on another
        thread. A channel that is broken fails it at once: nothing waits for the server to come back."""
        call = self._stub.ModelInfer.future(message, timeout=timeout_s, wait_for_ready=False)
        call.add_done_callback(then)
        return call

    def answer(self, call: Any) -> Any:
        """The response of a call that has ended, or :class:`Failed`."""
        try:
            return call.result()
        except self._grpc.RpcError as error:
            return self.failed(error)
        except self._grpc.FutureCancelledError:
            return Failed("timeout", "given up")

    def failed(self, error: Any) -> Failed:
        """A gRPC error as one of our kinds, in one line."""
        code = error.code().name
        return Failed(_KINDS.get(code, "backend-error"), f"{code}: {' '.join(str(error.details() or '').split())}")


def _configured(server: Server, config: Any) -> Server:
    """A model's own configuration beside what the server says (an extension)."""
    groups = [max(group.count, 1) * max(len(group.gpus), 1) for group in config.instance_group]
    hold = config.dynamic_batching.max_queue_delay_microseconds if config.HasField("dynamic_batching") else 0
    return Server(
        name=server.name,
        version=server.version,
        extensions=server.extensions,
        platform=server.platform or config.backend,
        instances=sum(groups) or None,
        max_batch=max(config.max_batch_size, 1) if config.HasField("dynamic_batching") else 1,
        hold_ms=hold / 1e3,
    )


def _counters(stats: Any) -> Counters:
    parts = [one.inference_stats for one in stats]
    compute = [(part.compute_input, part.compute_infer, part.compute_output) for part in parts]
    return Counters(
        requests=sum(one.inference_count for one in stats),
        executions=sum(one.execution_count for one in stats),
        failed=sum(part.fail.count for part in parts),
        queued=sum(part.queue.count for part in parts),
        queue_ns=sum(part.queue.ns for part in parts),
        computed=sum(part.compute_infer.count for part in parts),
        compute_ns=sum(stage.ns for stages in compute for stage in stages),
    )
