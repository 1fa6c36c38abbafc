"""One model of a farm under load, which advice and ``what-if`` ask: what another disk or load gains."""
