"""The parts of a payload that are hashed by themselves: deal core, seat, actions. They are cut out of its bytes.

A payload is canonical, so its part is the part's canonical form: to format the parsed part again gives the same bytes.
Only for payloads that `parse_statement` has accepted: none of their texts here holds a quote or a brace, so that no
text can look like the place where a part begins or ends.
"""

from __future__ import annotations


def deal_bytes(payload: bytes) -> bytes:
    """The canonical `deal` of a round_opening."""
    return _object(payload, b'"deal":{', b'},"instance":')


def seat_bytes(payload: bytes) -> bytes:
    """The canonical `seat` of a round_opening or seat_opening."""
    return _object(payload, b'"seat":{', b'},"session_id":')


def action_bytes(payload: bytes) -> list[bytes]:
    """The canonical actions of a round_final or seat_final, one by one."""
    head = b'"actions":['
    first = payload.index(head) + len(head)
    members = payload[first + 1 : payload.index(b'],"actions_hash":', first) - 1]  # without the outer braces
    return [b"{%s}" % action for action in members.split(b"},{")] if members else []


def _object(payload: bytes, head: bytes, foot: bytes) -> bytes:
    """From the brace at the end of `head` to the brace at the beginning of `foot`, with both."""
    first = payload.index(head) + len(head) - 1
    return payload[first : payload.index(foot, first) + 1]
