"""The rulesets and jurisdictions that a replay knows, by id, version and hash (check 8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rgs.core.jurisdictions import EARLIER_VERSIONS, SHIPPED_JURISDICTIONS, Jurisdiction, load_jurisdiction
from rgs.core.rulesets import SHIPPED_RULESETS, Ruleset, load_ruleset

_Key = tuple[str, str, str]


class Rulebook:
    """Rulesets and jurisdictions, looked up by the `{id, version, sha256}` object of a statement."""

    def __init__(self, rulesets: Iterable[Ruleset] = (), jurisdictions: Iterable[Jurisdiction] = ()) -> None:
        """The shipped ones, earlier versions too, and further ones that older files name."""
        shipped_rulesets = (load_ruleset(ruleset_id) for ruleset_id in SHIPPED_RULESETS)
        self._rulesets = {_key(ruleset): ruleset for ruleset in (*shipped_rulesets, *rulesets)}
        newest = (load_jurisdiction(jurisdiction_id) for jurisdiction_id in SHIPPED_JURISDICTIONS)
        earlier = (load_jurisdiction(jurisdiction_id, version) for jurisdiction_id, version in EARLIER_VERSIONS)
        self._jurisdictions = {_key(one): one for one in (*newest, *earlier, *jurisdictions)}

    def ruleset(self, named: Mapping[str, str] | None) -> Ruleset | None:
        """The ruleset, None if it is unknown or not named."""
        return None if named is None else self._rulesets.get((named["id"], named["version"], named["sha256"]))

    def jurisdiction(self, named: Mapping[str, str] | None) -> Jurisdiction | None:
        """The jurisdiction, None if it is unknown or not named."""
        return None if named is None else self._jurisdictions.get((named["id"], named["version"], named["sha256"]))


def _key(rules: Ruleset | Jurisdiction) -> _Key:
    return rules.id, str(rules.version), rules.sha256
