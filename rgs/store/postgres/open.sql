-- New sessions of a group, by columns.
INSERT INTO sessions (
  id, status, last_ms, version, close_ms, regulator_session_id, test_register, participation_id,
  regulator_participation_id, bought_minor, staked_minor, returned_minor, paid_out_minor, ended, purchase_no,
  stage_no, rounds, open_round_id, last_start_ms, code_count, pending_affair, link_no, link_hash, session_id,
  operator, player, operator_reference, ruleset_id, jurisdiction_id, currency, open_ms, limit_loss_minor,
  limit_stake_minor, limit_duration_ms, funding, last_id
) SELECT
  n.id, n.status, n.last_ms, n.version, n.close_ms, n.regulator_session_id, n.test_register, n.participation_id,
  n.regulator_participation_id, n.bought_minor, n.staked_minor, n.returned_minor, n.paid_out_minor, n.ended,
  n.purchase_no, n.stage_no, n.rounds, n.open_round_id, n.last_start_ms, n.code_count, n.pending_affair, n.link_no,
  n.link_hash, n.session_id, n.operator, n.player, n.operator_reference, n.ruleset_id, n.jurisdiction_id, n.currency,
  n.open_ms, n.limit_loss_minor, n.limit_stake_minor, n.limit_duration_ms, n.funding, n.last_id
  FROM unnest(
    $1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::integer[], $8::text[],
    $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::integer[], $15::bigint[],
    $16::bigint[], $17::bigint[], $18::text[], $19::bigint[], $20::bigint[], $21::text[], $22::bigint[], $23::text[],
    $24::text[], $25::text[], $26::text[], $27::text[], $28::text[], $29::text[], $30::text[], $31::bigint[],
    $32::bigint[], $33::bigint[], $34::bigint[], $35::text[], $36::bigint[]
  ) AS n (
    id, status, last_ms, version, close_ms, regulator_session_id, test_register, participation_id,
    regulator_participation_id, bought_minor, staked_minor, returned_minor, paid_out_minor, ended, purchase_no,
    stage_no, rounds, open_round_id, last_start_ms, code_count, pending_affair, link_no, link_hash, session_id,
    operator, player, operator_reference, ruleset_id, jurisdiction_id, currency, open_ms, limit_loss_minor,
    limit_stake_minor, limit_duration_ms, funding, last_id
  )
