-- A request opens one session, for ever: the index that stands says so already, and rows of operations are never deleted.

COMMENT ON INDEX operations_by_request IS 'one effect a request, for ever; OpenSession has nothing else that would tell';
