-- A request opens one session, for ever: `OpenSession` has no number that a late repeat would miss, so its request id
-- stays with the operation that has opened the session. Where a store has two already, the later ones keep theirs in another
-- form, for nobody asks for them.

UPDATE operations SET request_id = request_id || ' ' || operation_id WHERE kind = 'open' AND status = 'done' AND EXISTS (
  SELECT 1 FROM operations AS first WHERE first.kind = 'open' AND first.status = 'done' AND first.party = operations.party
  AND first.request_id = operations.request_id AND first.operation_id < operations.operation_id
);
CREATE UNIQUE INDEX operations_opened ON operations (request_id, party) WHERE kind = 'open' AND status = 'done';
