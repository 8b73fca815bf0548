//! The cloud of a stack with a domain of stack users and signal endpoints, as configured in a service.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_cloud::{Connector, Credentials, Named, Scope, StackCloud};
use kiln_resource::{AccountNames, Cloud, CloudRequest, CloudResponse, Failure, SignalEndpoints, UserDomain};
use kiln_value::Secret;

/// The cloud of a stack, and that of the administrator of the domain.
pub(crate) struct Signalling {
    cloud: Arc<StackCloud>,
    admin: Arc<StackCloud>,
}

impl Signalling {
    pub(crate) async fn new(connector: &Connector, cloud: Arc<StackCloud>) -> Self {
        let domain = Named::id("heat");
        let admin = Credentials::Password {
            user: Named::Name { name: "heat_domain_admin".to_owned(), domain: Some(Box::new(domain.clone())) },
            password: Secret::new("password".to_owned()),
            scope: Scope::Domain(domain),
        };
        let admin = connector.cloud(&admin).await;
        admin.session().token().await.unwrap();
        Self { cloud, admin }
    }
}

#[async_trait]
impl Cloud for Signalling {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        self.cloud.call(request).await
    }

    async fn find(&self, finder: &str, name_or_id: &str) -> Result<String, Failure> {
        self.cloud.find(finder, name_or_id).await
    }

    async fn has_service(&self, service: &str) -> Result<bool, Failure> {
        self.cloud.has_service(service).await
    }

    async fn has_extension(&self, service: &str, alias: &str) -> Result<bool, Failure> {
        self.cloud.has_extension(service, alias).await
    }

    async fn endpoint(&self, service: &str) -> Result<Option<String>, Failure> {
        self.cloud.endpoint(service).await
    }

    async fn user_domain(&self) -> Result<Option<UserDomain>, Failure> {
        let role = "heat_stack_user".to_owned();
        Ok(Some(UserDomain { cloud: self.admin.clone(), id: "heat".to_owned(), role }))
    }

    async fn signal_endpoints(&self) -> Result<SignalEndpoints, Failure> {
        Ok(SignalEndpoints {
            cfn: Some("http://heat:8000/v1".to_owned()),
            metadata: None,
            heat: Some("http://heat:8004/v1".to_owned()),
            keystone: Some("http://keystone/v3".to_owned()),
            region: None,
        })
    }

    async fn account_names(&self) -> Result<AccountNames, Failure> {
        self.cloud.account_names().await
    }

    async fn project_id(&self) -> Result<String, Failure> {
        self.cloud.project_id().await
    }
}
