//! How the result that an agent reports changes a deployment.

use kiln_value::{Map, Value, text};

use super::{SoftwareConfig, SoftwareDeployment};

/// The outputs that every deployment has.
pub const OUTPUTS: [&str; 3] = ["deploy_stdout", "deploy_stderr", "deploy_status_code"];
const STATUS_CODE: &str = "deploy_status_code";

impl SoftwareDeployment {
    /// Writes the outputs and the status into the deployment, which has this config; returns the result for the event.
    pub fn receive(&mut self, config: &SoftwareConfig, details: &Map) -> String {
        let mut outputs = self.body.outputs.as_map().cloned().unwrap_or_default();
        let mut failures = Vec::new();
        let mut event = format!("deployment {} succeeded", self.id);
        let shown = |key: &str| text::str(details.get(key).unwrap_or(&Value::Null));
        let code = details.get(STATUS_CODE).filter(|code| code.is_truthy()).map(text::str).filter(|code| code != "0");
        if let Some(code) = &code {
            failures.push(format!("{STATUS_CODE} : Deployment exited with non-zero status code: {code}"));
            event = format!("deployment {} failed ({code})", self.id);
        }
        for output in &config.body.outputs {
            let Some((name, value)) = output.str_at("name").and_then(|name| details.get_key_value(name)) else {
                continue;
            };
            outputs.insert(name.clone(), value.clone());
            if output.get("error_output").is_some_and(Value::is_truthy) {
                failures.push(format!("{name} : {}", shown(name)));
                event = format!("deployment {} failed", self.id);
            }
        }
        for name in OUTPUTS {
            outputs.insert(name.to_owned(), details.get(name).cloned().unwrap_or_default());
        }
        let body = &mut self.body;
        body.outputs = outputs.into();
        let (status, reason) = if failures.is_empty() {
            ("COMPLETE", "Outputs received".to_owned())
        } else {
            ("FAILED", failures.join(", "))
        };
        (body.status, body.reason) = (Some(status.to_owned()), reason);
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_value::value;

    fn applied(details: &Value) -> (SoftwareDeployment, String) {
        let mut config = SoftwareConfig::default();
        config.body.outputs = vec![value!({"name": "result"}), value!({"name": "oops", "error_output": true})];
        let mut deployment = SoftwareDeployment { id: "d".to_owned(), ..SoftwareDeployment::default() };
        let event = deployment.receive(&config, details.as_map().unwrap());
        (deployment, event)
    }

    #[test]
    fn outputs_complete_or_fail_a_deployment() {
        let (done, event) = applied(&value!({"result": 7, "deploy_status_code": 0, "other": 1}));
        let outputs = value!({"result": 7, "deploy_stdout": null, "deploy_stderr": null, "deploy_status_code": 0});
        assert_eq!((done.body.outputs, done.body.status.as_deref()), (outputs, Some("COMPLETE")));
        assert_eq!((done.body.reason.as_str(), event.as_str()), ("Outputs received", "deployment d succeeded"));
        let (failed, event) = applied(&value!({"deploy_status_code": "3", "oops": "broken"}));
        let reason = "deploy_status_code : Deployment exited with non-zero status code: 3, oops : broken";
        assert_eq!((failed.body.reason.as_str(), failed.body.status.as_deref()), (reason, Some("FAILED")));
        assert_eq!(event, "deployment d failed");
        assert_eq!(applied(&value!({"deploy_status_code": 1})).1, "deployment d failed (1)");
    }
}
