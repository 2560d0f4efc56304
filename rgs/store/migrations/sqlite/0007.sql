-- A request opens one session, for ever: `OpenSession` has no number that a late repeat would miss, so its request id
-- stays with the affair that has opened the session. Where a store has two already, the later ones keep theirs in another
-- form, for nobody asks for them.

UPDATE affairs SET request_id = request_id || ' ' || affair_id WHERE kind = 'open' AND status = 'done' AND EXISTS (
  SELECT 1 FROM affairs AS first WHERE first.kind = 'open' AND first.status = 'done' AND first.party = affairs.party
  AND first.request_id = affairs.request_id AND first.affair_id < affairs.affair_id
);
CREATE UNIQUE INDEX affairs_opened ON affairs (request_id, party) WHERE kind = 'open' AND status = 'done';
