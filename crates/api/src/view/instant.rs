//! Times in responses.

pub(crate) use kiln_resource::shared_software::instant;
