"""PURE: the one machine of queue, batcher and placement, its policies, and the virtual-clock driver."""
