-- One group of changes (rgs.store.group), whole: every array is a column of one table's new rows. Prepared once a
-- connection. Answers how many sessions and rounds were moved, and whether the instance was alive and where it should
-- be; the writer rolls back where one of them is short.
WITH moved AS (
  UPDATE sessions AS s SET
    status = n.status, last_ms = n.last_ms, version = n.version, close_ms = n.close_ms, regulator_session_id =
    n.regulator_session_id, test_register = n.test_register, participation_id = n.participation_id,
    regulator_participation_id = n.regulator_participation_id, bought_minor = n.bought_minor, staked_minor =
    n.staked_minor, returned_minor = n.returned_minor, paid_out_minor = n.paid_out_minor, ended = n.ended, purchase_no
    = n.purchase_no, stage_no = n.stage_no, rounds = n.rounds, open_round_id = n.open_round_id, last_start_ms =
    n.last_start_ms, code_count = n.code_count, pending_affair = n.pending_affair, link_no = n.link_no, link_hash =
    n.link_hash, last_id = n.last_id
  FROM unnest(
    $1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::integer[], $7::text[], $8::text[],
    $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::integer[], $14::bigint[], $15::bigint[],
    $16::bigint[], $17::text[], $18::bigint[], $19::bigint[], $20::text[], $21::bigint[], $22::text[], $23::text[],
    $24::bigint[]
  ) AS n (
    status, last_ms, version, close_ms, regulator_session_id, test_register, participation_id,
    regulator_participation_id, bought_minor, staked_minor, returned_minor, paid_out_minor, ended, purchase_no,
    stage_no, rounds, open_round_id, last_start_ms, code_count, pending_affair, link_no, link_hash, session_id,
    last_id
  )
  WHERE s.session_id = n.session_id AND s.version = n.version - 1
  RETURNING 1
), dealt AS (
  INSERT INTO rounds (
    id, round_id, session_id, operator, player, ruleset_id, stage_no, seat_no, game_code, instance, draw_no, deal,
    commitment, bets, balance_before_minor, start_ms, opening_hash, sealed, status, version, actions, end_ms,
    staked_minor, returned_minor, funds_minor, malfunction, malfunction_code
  ) SELECT
    n.id, n.round_id, n.session_id, n.operator, n.player, n.ruleset_id, n.stage_no, n.seat_no, n.game_code,
    n.instance, n.draw_no, n.deal, n.commitment, n.bets, n.balance_before_minor, n.start_ms, n.opening_hash, n.sealed,
    n.status, n.version, n.actions, n.end_ms, n.staked_minor, n.returned_minor, n.funds_minor, n.malfunction,
    n.malfunction_code
  FROM unnest(
    $25::bigint[], $26::text[], $27::text[], $28::text[], $29::text[], $30::text[], $31::bigint[], $32::integer[],
    $33::text[], $34::text[], $35::bigint[], $36::bytea[], $37::bytea[], $38::text[], $39::bigint[], $40::bigint[],
    $41::text[], $42::bytea[], $43::text[], $44::bigint[], $45::text[], $46::bigint[], $47::bigint[], $48::bigint[],
    $49::bigint[], $50::text[], $51::text[]
  ) AS n (
    id, round_id, session_id, operator, player, ruleset_id, stage_no, seat_no, game_code, instance, draw_no, deal,
    commitment, bets, balance_before_minor, start_ms, opening_hash, sealed, status, version, actions, end_ms,
    staked_minor, returned_minor, funds_minor, malfunction, malfunction_code
  )
), played AS (
  UPDATE rounds AS r SET
    sealed = n.sealed, status = n.status, version = n.version, actions = n.actions, end_ms = n.end_ms, staked_minor =
    n.staked_minor, returned_minor = n.returned_minor, malfunction = n.malfunction, malfunction_code =
    n.malfunction_code
  FROM unnest(
    $52::bytea[], $53::text[], $54::bigint[], $55::text[], $56::bigint[], $57::bigint[], $58::bigint[], $59::text[],
    $60::text[], $61::text[], $62::integer[], $63::bigint[]
  ) AS n (
    sealed, status, version, actions, end_ms, staked_minor, returned_minor, malfunction, malfunction_code, round_id,
    seat_no, below
  )
  WHERE r.round_id = n.round_id AND r.seat_no = n.seat_no AND r.version = n.below
  RETURNING 1
), signed AS (
  INSERT INTO statements (
    id, instance, statement_no, kind, code, session_id, link_no, round_id, seat_no, hash, envelope
  ) SELECT
    n.id, n.instance, n.statement_no, n.kind, n.code, n.session_id, n.link_no, n.round_id, n.seat_no, n.hash,
    n.envelope
  FROM unnest(
    $64::bigint[], $65::text[], $66::bigint[], $67::text[], $68::text[], $69::text[], $70::bigint[], $71::text[],
    $72::integer[], $73::bytea[], $74::bytea[]
  ) AS n (
    id, instance, statement_no, kind, code, session_id, link_no, round_id, seat_no, hash, envelope
  )
), kept AS (
  INSERT INTO privates (
    instance, statement_no, private
  ) SELECT
    n.instance, n.statement_no, n.private
  FROM unnest(
    $75::text[], $76::bigint[], $77::bytea[]
  ) AS n (
    instance, statement_no, private
  )
), answered AS (
  INSERT INTO answers (
    party, method, request_id, digest, body, instance, statement_no, time_ms
  ) SELECT
    n.party, n.method, n.request_id, n.digest, n.body, n.instance, n.statement_no, n.time_ms
  FROM unnest(
    $78::text[], $79::text[], $80::text[], $81::bytea[], $82::bytea[], $83::text[], $84::bigint[], $85::bigint[]
  ) AS n (
    party, method, request_id, digest, body, instance, statement_no, time_ms
  )
), reported AS (
  INSERT INTO stage_reports (
    id, session_id, stage_no, regulator_session_id, regulator_participation_id, available_minor, staked_minor,
    returned_minor, opening_hash, end_ms, final_hash
  ) SELECT
    n.id, n.session_id, n.stage_no, n.regulator_session_id, n.regulator_participation_id, n.available_minor,
    n.staked_minor, n.returned_minor, n.opening_hash, n.end_ms, n.final_hash
  FROM unnest(
    $86::bigint[], $87::text[], $88::bigint[], $89::text[], $90::text[], $91::bigint[], $92::bigint[], $93::bigint[],
    $94::text[], $95::bigint[], $96::text[]
  ) AS n (
    id, session_id, stage_no, regulator_session_id, regulator_participation_id, available_minor, staked_minor,
    returned_minor, opening_hash, end_ms, final_hash
  )
), counted AS (
  -- In the order of the key, so that two nodes never wait for one another in a circle.
  INSERT INTO totals AS t (
    day, operator, player, game, currency, rounds, staked_minor, returned_minor, void_rounds, void_minor
  ) SELECT
    n.day, n.operator, n.player, n.game, n.currency, sum(n.rounds)::bigint, sum(n.staked_minor)::bigint,
    sum(n.returned_minor)::bigint, sum(n.void_rounds)::bigint, sum(n.void_minor)::bigint
  FROM unnest(
    $97::text[], $98::text[], $99::text[], $100::text[], $101::text[], $102::bigint[], $103::bigint[], $104::bigint[],
    $105::bigint[], $106::bigint[]
  ) AS n (
    day, operator, player, game, currency, rounds, staked_minor, returned_minor, void_rounds, void_minor
  )
  GROUP BY n.operator, n.day, n.player, n.game, n.currency
  ORDER BY n.operator, n.day, n.player, n.game, n.currency
  ON CONFLICT (operator, day, player, game, currency) DO UPDATE SET
    rounds = t.rounds + excluded.rounds, staked_minor = t.staked_minor + excluded.staked_minor, returned_minor =
    t.returned_minor + excluded.returned_minor, void_rounds = t.void_rounds + excluded.void_rounds, void_minor =
    t.void_minor + excluded.void_minor
), forgotten AS (
  DELETE FROM stage_reports WHERE id = ANY($107::bigint[])
), advanced AS (
  UPDATE instances SET statement_no = $108, draw_no = $109, last_id = $110
  WHERE instance = $111 AND alive = 1 AND statement_no = $112
  RETURNING 1
)
SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM played), (SELECT count(*) FROM advanced)
