"""Joining a Ray cluster, or starting one on this machine for one run; leasing its nodes, and looking at their machines.

The machine that gives the command must be a node of the cluster (Ray asks for that), and should offer no CPUs if others
are there: what reads, simulates and writes reports is then nobody's neighbour.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from trimtab import __version__
from trimtab.domain.envelope import Envelope
from trimtab.domain.ports import Progress
from trimtab.domain.study import Study
from trimtab.errors import MachineError, MissingTool, TrimtabError, UsageError
from trimtab.loop.context import runtimes_of
from trimtab.loop.machine import backend_versions
from trimtab.loop.trials import crossing
from trimtab.loop.trials.pooling import Machine, Pool, pooled
from trimtab.loop.trials.ray_executor import BAR, RayExecutor
from trimtab.loop.trials.ray_node import Node

KNOCK_S = 5.0
LEASE_S = 60.0
"""How long a node may be busy with the work of others before it is left out."""


class _Leased(NamedTuple):
    """Actors by node, the nodes of each machine, and why other nodes make nothing."""

    nodes: dict[str, Any]
    machines: dict[str, list[str]]
    refused: dict[str, tuple[str, ...]]


@contextmanager
def opened(address: str, study: Study, stored: Sequence[Envelope], progress: Progress) -> Iterator[RayExecutor]:
    """The executor on the cluster at ``address``; empty: one that is started here and stopped at the end.

    ``stored``: the machines of a packet that is continued. MissingTool without ray, MachineError where the cluster
    cannot be joined or has no machine for this study.
    """
    if importlib.util.find_spec("ray") is None:
        raise MissingTool("ray is not installed", where="--executor ray", fix="pip install 'trimtab[ray]'")
    progress.step(BAR, 0, None, f"joining {address}" if address else "starting a cluster on this machine")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    ray = importlib.import_module("ray")
    importlib.import_module("ray.exceptions")
    _join(ray, address)
    try:
        leased = _lease(ray, progress)
        try:
            yield _executor(ray, leased, study, stored, progress)
        finally:
            with suppress(ray.exceptions.RayError):  # what is gone has left already
                ray.get([node.leave.remote() for node in leased.nodes.values()], timeout=LEASE_S)
    finally:
        ray.shutdown()


def _join(ray: Any, address: str) -> None:
    if address:
        knock(address)
    cores = len(os.sched_getaffinity(0))
    own = {} if address else {"num_cpus": cores, "include_dashboard": False}
    try:
        ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, namespace="trimtab", **own)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise _no_entry(address, error) from error


def knock(address: str) -> None:
    """Is anybody there? Ray itself asks for minutes. UsageError for what is no address of a head."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        raise UsageError(
            f"{address!r} is no address of a cluster",
            where="--executor",
            fix="give HOST:PORT of its head; this machine must be a node of it",
        )
    try:
        socket.create_connection((host, int(port)), timeout=KNOCK_S).close()
    except OSError as error:
        raise _no_entry(address, error) from error


def _no_entry(address: str, error: Exception) -> MachineError:
    return MachineError(
        f"the Ray cluster cannot be joined: {error}",
        where=f"--executor ray:{address}" if address else "--executor ray",
        fix="start this machine as a node of it (`ray start --address=... --num-cpus=0`), and check the address",
    )


def _stand(ray: Any) -> dict[str, Any]:
    """An actor for every node that has CPUs, which holds all of them once Ray has put it there."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    actor, found = ray.remote(Node), {}
    for node in ray.nodes():
        cpus = int(node["Resources"].get("CPU", 0)) if node["Alive"] else 0
        if cpus:
            there = strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            placed = actor.options(num_cpus=cpus, max_restarts=0, scheduling_strategy=there)
            found[node["NodeID"]] = placed.remote()
    return found


def _lease(ray: Any, progress: Progress) -> _Leased:
    """The nodes that answer in time, by machine. The others are let go."""
    nodes = _stand(ray)
    progress.step(BAR, 0, None, f"leasing every node: {len(nodes)}")
    hellos = {actor.hello.remote(): node for node, actor in nodes.items()}
    ready, late = ray.wait(list(hellos), num_returns=len(hellos), timeout=LEASE_S) if hellos else ([], [])
    refused: dict[str, tuple[str, ...]] = {
        _named(hellos[each]): ("busy with other work of the cluster",) for each in late
    }
    machines: dict[str, list[str]] = {}
    for each in ready:
        try:
            machine, host, version = ray.get(each)
        except ray.exceptions.RayError as error:
            refused[_named(hellos[each])] = (_last_line(error),)
            continue
        if version == __version__:
            machines.setdefault(machine, []).append(hellos[each])
        else:
            refused[host] = (f"trimtab: {__version__} against {version}",)
    _let_go(ray, nodes, {node for each in machines.values() for node in each})
    return _Leased(nodes, machines, refused)


def _executor(ray: Any, leased: _Leased, study: Study, stored: Sequence[Envelope], progress: Progress) -> RayExecutor:
    """On the machines that are alike; the others are let go."""
    cores, runtimes = study.envelope.cores, runtimes_of(study)
    found: list[Machine] = []
    for machine, nodes in sorted(leased.machines.items()):
        progress.step(BAR, len(found), len(leased.machines), "looking at each machine")
        try:
            found.append(Machine(machine, tuple(sorted(nodes)), _look(ray, leased.nodes[min(nodes)], cores, runtimes)))
        except (TrimtabError, ray.exceptions.RayError) as error:
            leased.refused[_named(min(nodes))] = (_last_line(error),)
    pool = pooled(found, {"numpy": np.__version__, **backend_versions(runtimes)}, stored, leased.refused)
    _let_go(ray, leased.nodes, {node for machine in pool.machines for node in machine.nodes})
    progress.step(BAR, 1, 1, f"{len(pool.machines)} in use, at home on {pool.home.envelope.host}")
    driver = study.envelope.driver_core if study.envelope.driver_core is not None else study.envelope.cores[-1]
    return RayExecutor(ray, leased.nodes, pool, _told(pool), driver, progress)


def _look(ray: Any, node: Any, cores: tuple[int, ...], runtimes: tuple[str, ...]) -> Envelope:
    """The envelope of the machine on which ``node`` stands, read by a process like that of a trial."""
    messages = ray.get(node.begin.remote(crossing.encode(crossing.Look(cores, runtimes)), cores[-1]))
    while not messages:
        messages = ray.get(node.poll.remote())
    said = crossing.decode_said(messages[0])
    if isinstance(said, crossing.Seen):
        return said.envelope
    if isinstance(said, crossing.Fault):
        raise TrimtabError(said.what)
    raise TrimtabError(f"it does not say what it is: {said}")


def _let_go(ray: Any, nodes: dict[str, Any], kept: set[str]) -> None:
    for node in nodes.keys() - kept:
        ray.kill(nodes.pop(node))


def _named(node: str) -> str:
    return f"node {node[:8]}"


def _last_line(error: Exception) -> str:
    return error.what if isinstance(error, TrimtabError) else str(error).strip().splitlines()[-1]


def _told(pool: Pool) -> list[str]:
    """Which machines made the trials, and why others did not."""
    others = ", ".join(machine.envelope.host for machine in pool.beside)
    beside = f", beside it {others}" if others else ""
    said = [f"Trials were made under Ray, at home on {pool.home.envelope.host}{beside}."]
    said += [f"{name} made no trials: {', '.join(why)}." for name, why in pool.refused.items()]
    return said
