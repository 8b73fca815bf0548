//! Which requests are audited: `ignore_req_list` and `ignore_path_list` of the filter.

/// Which requests are audited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Methods that are not, in capitals.
    methods: Vec<String>,
    /// Paths that are not: the whole path, decoded.
    paths: Vec<String>,
}

impl Rules {
    /// Rules that leave out these methods and paths.
    pub fn new(methods: &[String], paths: &[String]) -> Self {
        let methods = methods.iter().map(|method| method.trim().to_uppercase()).collect();
        Self { methods, paths: paths.iter().filter(|path| !path.is_empty()).cloned().collect() }
    }

    /// Whether a request is audited; `path` is decoded.
    pub(crate) fn take(&self, method: &str, path: &str) -> bool {
        !self.methods.iter().any(|ignored| ignored == method) && !self.paths.iter().any(|ignored| ignored == path)
    }
}
