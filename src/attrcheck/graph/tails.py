"""What follows a node of a graph, to be run again with other values there."""

from __future__ import annotations

from typing import Any

from torch import Tensor, fx


class Tail(fx.Interpreter):
    """Runs a graph once and keeps what is read behind one node; then runs only what depends on it.

    values: what the node held. All later values must be of the same shape: what stays as it was,
    shortcuts around the node among it, has as many rows.
    """

    def __init__(self, model: fx.GraphModule, cut: fx.Node, images: Tensor) -> None:
        super().__init__(model)
        self.cut = cut
        behind = {cut}
        for node in model.graph.nodes:
            if behind.intersection(node.all_input_nodes):
                behind.add(node)
        self._rest = [node for node in model.graph.nodes if node not in behind]
        self._kept: dict[fx.Node, Any] = {}
        self._read = {part for node in behind - {cut} for part in node.all_input_nodes} - behind
        self.logits: Tensor = self.run(images)
        self.values: Tensor = self._kept[cut]
        self._start = {node: self._kept.get(node) for node in self._rest}

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        value = super().run_node(n)
        if n is self.cut or n in self._read:
            self._kept[n] = value
        return value

    def logits_of(self, values: Tensor) -> Tensor:
        """The logits with other values at the node."""
        logits: Tensor = self.run(initial_env={**self._start, self.cut: values})
        return logits
