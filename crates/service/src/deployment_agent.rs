//! The agent of a deployment that a user has created. No engine works on such a deployment, so the service writes its
//! metadata and reads its result.

use kiln_identity::Caller;
use kiln_resource::{CloudRequest, Failure, Method, SoftwareChange, SoftwareConfig, SoftwareDeployment};
use kiln_value::url::unquote;
use kiln_value::{Class, Map, Value};

use crate::container_files::{SWIFT, path};
use crate::{Error, Service};

impl Service {
    /// Stores a change of a deployment, then writes the metadata of its server where its agent reads them. If this process
    /// dies between, or the cloud does not respond, an engine writes them.
    pub(crate) async fn change_on(
        &self,
        project: &str,
        server: &str,
        change: &SoftwareChange,
    ) -> Result<(), kiln_store::Error> {
        let pushed = kiln_stack::stored_software::pushed_server(&self.backends, project, server).await?;
        if let Some(row) = &pushed {
            kiln_stack::stored_software::plan_push(&self.backends, row).await?;
        }
        self.backends.store.change_software(change).await?;
        if let Some(row) = &pushed
            && let Err(failure) = kiln_stack::stored_software::push_metadata(&self.backends, row).await
        {
            tracing::warn!(server, %failure, "the deployments of a server were not delivered yet");
        }
        Ok(())
    }

    /// A deployment that the caller can see, with the result that its agent has left in Swift.
    pub async fn current_deployment(&self, caller: &Caller, id: &str) -> Result<SoftwareDeployment, Error> {
        let mut deployment = self.deployment(caller, id).await?;
        if !deployment.is_in_progress() {
            return Ok(deployment);
        }
        let store = &self.backends.store;
        let config = store.software_config(&deployment.config).await?.unwrap_or_default();
        match self.result(caller, &config).await {
            Ok(Some(details)) => {
                deployment.receive(&config, &details);
                deployment.updated = Some(self.backends.clock.now());
                store.change_software(&SoftwareChange::ChangeDeployment(deployment.clone())).await?;
            }
            Ok(None) => {}
            Err(failure) => tracing::warn!(id, %failure, "the result of a deployment cannot be read"),
        }
        Ok(deployment)
    }

    /// The result of a deployment with `TEMP_URL_SIGNAL`; `None` if there is none yet.
    async fn result(&self, caller: &Caller, config: &SoftwareConfig) -> Result<Option<Map>, Failure> {
        let inputs = config.input_values();
        let text = |name: &str| inputs.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("deploy_signal_transport") != "TEMP_URL_SIGNAL" {
            return Ok(None);
        }
        // The URL ends with the container and the object.
        let url = text("deploy_signal_id").split(['?', '#']).next().unwrap_or_default();
        let mut parts = url.rsplitn(3, '/');
        let (Some(object), Some(container)) = (parts.next(), parts.next()) else { return Ok(None) };
        let Some(cloud) = self.identity.cloud(caller).await else { return Ok(None) };
        let place = path(&[&unquote(container), &unquote(object)]);
        let mut request = CloudRequest::new(SWIFT, Method::Get, place);
        request.headers.push(("accept".to_owned(), "text/plain".to_owned()));
        let body = match cloud.call(request).await {
            Ok(response) => response.body,
            Err(failure) if failure.is_not_found() => return Ok(None),
            Err(failure) => return Err(failure),
        };
        match body.as_str().filter(|text| !text.is_empty()).map(serde_json::from_str) {
            None => Ok(None),
            Some(Ok(Value::Map(details))) => Ok(Some(details.into_iter().collect())),
            Some(_) => Err(Failure::other(Class::ValueError, "the result is not a map in JSON")),
        }
    }
}
