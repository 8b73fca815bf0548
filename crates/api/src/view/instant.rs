//! Times in responses.

pub(crate) use kiln_resource::software::instant;
