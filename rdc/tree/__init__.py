"""Trees of entries: filters, walks, manifests and their digests. rdc.session, rdc.plan and rdc.survey use
it."""
