"""The tables in which a scan counts chunks. rdc.kernel.chunk_counts exports them to rdc.survey.count."""
