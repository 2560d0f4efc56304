-- The sessions of one player that are not closed: found without passing by all that are.

CREATE INDEX sessions_not_closed_of ON sessions (operator, player, id) WHERE status <> 'closed';
