//! Calls for resource types, template versions, build info, engines and validation.

use http::Method;
use kiln_value::{Map, Value};

use crate::client::{Query, segment, unwrap_list};
use crate::{Bundle, Client, Error};

/// Language of a generated template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// HOT.
    Hot,
    /// CloudFormation.
    Cfn,
}

impl Client {
    /// Names of resource types; with descriptions, each item is a map.
    pub async fn resource_types(&self, filters: &Query, descriptions: bool) -> Result<Vec<Value>, Error> {
        let mut query = filters.clone();
        if descriptions {
            query.push(("with_description".into(), "True".into()));
        }
        unwrap_list(self.get("/resource_types", &query).await?, "resource_types")
    }

    /// The schema of a resource type.
    pub async fn resource_type(&self, name: &str, description: bool) -> Result<Value, Error> {
        let query = if description { vec![("with_description".into(), "True".into())] } else { vec![] };
        self.get(&format!("/resource_types/{}", segment(name)), &query).await
    }

    /// A template with one resource of a type and parameters for its properties.
    pub async fn resource_type_template(&self, name: &str, dialect: Dialect) -> Result<Value, Error> {
        let dialect = match dialect {
            Dialect::Hot => "hot",
            Dialect::Cfn => "cfn",
        };
        let query = vec![("template_type".into(), dialect.into())];
        self.get(&format!("/resource_types/{}/template", segment(name)), &query).await
    }

    /// The types of blueprints and TOSCA that the operator has added: name and text of the file. None, if the service is
    /// not Kiln or does not show them.
    pub async fn topology_types(&self) -> Result<Vec<(String, String)>, Error> {
        let listed = match self.get("/topology_types", &vec![]).await {
            Err(Error::Refused(refusal)) if matches!(refusal.status, 403 | 404) => return Ok(Vec::new()),
            listed => unwrap_list(listed?, "topology_types")?,
        };
        let text = |entry: &Value, key: &str| entry.str_at(key).map(str::to_owned);
        Ok(listed.iter().filter_map(|entry| Some((text(entry, "name")?, text(entry, "text")?))).collect())
    }

    /// The template versions: `version`, `type`, `aliases`.
    pub async fn template_versions(&self) -> Result<Vec<Value>, Error> {
        unwrap_list(self.get("/template_versions", &vec![]).await?, "template_versions")
    }

    /// The functions of a template version: `functions`, `description`.
    pub async fn template_functions(&self, version: &str, conditions: bool) -> Result<Vec<Value>, Error> {
        let query = if conditions { vec![("with_condition_func".into(), "True".into())] } else { vec![] };
        let path = format!("/template_versions/{}/functions", segment(version));
        unwrap_list(self.get(&path, &query).await?, "template_functions")
    }

    /// Validates a template; returns its parameters and description, and with `preflight` what the create of a stack would meet
    /// in the cloud, if the service is Kiln.
    pub async fn validate(
        &self,
        bundle: &Bundle,
        parameters: &Map,
        nested: bool,
        ignore_errors: Option<&str>,
        preflight: bool,
    ) -> Result<Value, Error> {
        let mut body = Map::new();
        body.insert("template".into(), bundle.template.clone().into());
        body.insert("parameters".into(), parameters.clone().into());
        body.insert("files".into(), bundle.files.clone().into());
        body.insert("environment".into(), bundle.environment.clone().into());
        if !bundle.environment_files.is_empty() {
            body.insert("environment_files".into(), bundle.environment_files.clone().into());
        }
        if let Some(container) = &bundle.container {
            body.insert("files_container".into(), container.as_str().into());
        }
        let mut query = vec![];
        if nested {
            query.push(("show_nested".into(), "True".into()));
        }
        if preflight {
            query.push(("preflight".into(), "true".into()));
        }
        query.extend(ignore_errors.map(|classes| ("ignore_errors".to_owned(), classes.to_owned())));
        self.call(Method::POST, "/validate", &query, Some(&body.into())).await
    }

    /// The revisions of the service.
    pub async fn build_info(&self) -> Result<Value, Error> {
        self.get("/build_info", &vec![]).await
    }

    /// The engines.
    pub async fn services(&self) -> Result<Vec<Value>, Error> {
        unwrap_list(self.get("/services", &vec![]).await?, "services")
    }
}
