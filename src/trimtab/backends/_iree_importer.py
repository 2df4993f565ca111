"""The process that becomes IREE's compiler: an Order on standard input, the compiled program on standard output.

It imports the ONNX network with IREE's own importer, hands the result to the compiler through memory, and then *is* the
compiler: one process, whose end and whose words on standard error are the compiler's. No file is written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

from trimtab import child
from trimtab.backends import _onnx
from trimtab.backends._iree_compiler import FUNCTION, Order
from trimtab.backends._options import brief

OPSET = 17


def imported(order: Order) -> Any:
    """The network as an MLIR module with one function, its fixed axes written into the inputs.

    Every operation is located at the ONNX operator that it was made from, by name.
    """
    import onnx
    from iree.compiler.extras import onnx_importer
    from iree.compiler.ir import Context

    network = _onnx.read(order.path)
    onnx.load_external_data_for_model(network, _onnx.folder_of(order.path))
    _onnx.fix_inputs(network, order.ranges)
    unknown = {node.op_type for node in network.graph.node if not (node.domain or onnx.defs.has(node.op_type))}
    if unknown:
        raise ValueError(f"ONNX has no operator {', '.join(sorted(unknown))}")
    network = _raised(network)
    network.graph.name = FUNCTION
    del network.graph.value_info[:]  # shapes of before the inputs were fixed
    network = onnx.shape_inference.infer_shapes(network, data_prop=True)
    info = onnx_importer.ModelInfo(network)
    module = info.create_module(context=Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    module.verify()
    return module


def _raised(network: Any) -> Any:
    """The same network in the oldest operator set that IREE converts in full."""
    import onnx

    now = max((item.version for item in network.opset_import if item.domain in ("", "ai.onnx")), default=OPSET)
    return network if now >= OPSET else onnx.version_converter.convert_version(network, OPSET)


def main(argv: Sequence[str]) -> str:
    """Live no longer than the worker that asked, and become the compiler. Returns only with why it cannot."""
    if not child.tie_to(int(argv[0])):
        return "error: nobody waits for the program"
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    try:
        module = imported(order)
    except Exception as error:  # importer and ONNX raise whatever they meet; all mean: no module
        return f"error: the ONNX importer: {type(error).__name__}: {brief(error)}"
    source = os.memfd_create("network.mlirbc", 0)
    with os.fdopen(os.dup(source), "wb") as file:
        module.write_bytecode(file)
    os.lseek(source, 0, os.SEEK_SET)
    os.dup2(source, sys.stdin.fileno())
    return _become(order.flags)


def _become(flags: tuple[str, ...]) -> NoReturn:
    from iree.compiler.tools.binaries import find_tool

    tool = find_tool("iree-compile")
    os.execv(tool, (tool, "-", "-o", "-", *flags))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
