//! Calls for software configs and deployments.

use http::Method;
use kiln_value::Value;

use crate::client::{Query, segment, unwrap, unwrap_list};
use crate::{Client, Error};

impl Client {
    /// Software configs, newest first, without their contents.
    pub async fn software_configs(&self, limit: Option<u64>, marker: Option<&str>) -> Result<Vec<Value>, Error> {
        let mut query: Query = limit.map(|limit| ("limit".to_owned(), limit.to_string())).into_iter().collect();
        query.extend(marker.map(|marker| ("marker".to_owned(), marker.to_owned())));
        unwrap_list(self.get("/software_configs", &query).await?, "software_configs")
    }

    /// A software config.
    pub async fn software_config(&self, id: &str) -> Result<Value, Error> {
        unwrap(self.get(&format!("/software_configs/{}", segment(id)), &vec![]).await?, "software_config")
    }

    /// Creates a software config.
    pub async fn create_software_config(&self, config: &Value) -> Result<Value, Error> {
        let answer = self.call(Method::POST, "/software_configs", &vec![], Some(config)).await?;
        unwrap(answer, "software_config")
    }

    /// Deletes a software config.
    pub async fn delete_software_config(&self, id: &str) -> Result<(), Error> {
        let path = format!("/software_configs/{}", segment(id));
        self.call(Method::DELETE, &path, &vec![], None).await.map(drop)
    }

    /// Software deployments, oldest first: all, or those of a server.
    pub async fn software_deployments(&self, server: Option<&str>) -> Result<Vec<Value>, Error> {
        let query = server.map(|server| ("server_id".to_owned(), server.to_owned())).into_iter().collect();
        unwrap_list(self.get("/software_deployments", &query).await?, "software_deployments")
    }

    /// A software deployment.
    pub async fn software_deployment(&self, id: &str) -> Result<Value, Error> {
        unwrap(self.get(&format!("/software_deployments/{}", segment(id)), &vec![]).await?, "software_deployment")
    }

    /// Creates a software deployment.
    pub async fn create_software_deployment(&self, deployment: &Value) -> Result<Value, Error> {
        let answer = self.call(Method::POST, "/software_deployments", &vec![], Some(deployment)).await?;
        unwrap(answer, "software_deployment")
    }

    /// Deletes a software deployment.
    pub async fn delete_software_deployment(&self, id: &str) -> Result<(), Error> {
        let path = format!("/software_deployments/{}", segment(id));
        self.call(Method::DELETE, &path, &vec![], None).await.map(drop)
    }

    /// The configs that are deployed to a server.
    pub async fn deployment_metadata(&self, server: &str) -> Result<Value, Error> {
        unwrap(self.get(&format!("/software_deployments/metadata/{}", segment(server)), &vec![]).await?, "metadata")
    }
}
