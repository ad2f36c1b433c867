"""Attention as sequence operators: softmax, kernel, linear and causal attention, and what each costs."""

from capmem.attention.causal import causal_attention
from capmem.attention.cost import Choice, Cost, choose_order, cost, crossing_point
from capmem.attention.forms import Block, HeldRows, register_form
from capmem.attention.operators import kernel_attention, linear_attention, softmax_attention

__all__ = [
    "Block",
    "Choice",
    "Cost",
    "HeldRows",
    "causal_attention",
    "choose_order",
    "cost",
    "crossing_point",
    "kernel_attention",
    "linear_attention",
    "register_form",
    "softmax_attention",
]
