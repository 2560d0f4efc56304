def test_a_bundle_verifies_and_every_changed_byte_is_seen():
    pass
