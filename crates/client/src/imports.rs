//! Calls for imports. Heat has none of them.

use http::Method;
use kiln_value::{Map, Value, value};

use crate::client::unwrap;
use crate::{Client, Error, Stack, StackRequest};

/// An object for which a template is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectToWrite {
    /// The type of its resource.
    pub resource_type: String,
    /// Its ID.
    pub id: String,
    /// The name that the resource shall have; `None`: any.
    pub name: Option<String>,
}

impl Client {
    /// The `objects` of the project that can become resources, and the types that are `unlisted`.
    pub async fn scan_project(&self) -> Result<Value, Error> {
        self.get("/imports", &vec![]).await
    }

    /// A `template` for objects, and the `resources` of it. With `related`, also for what belongs together with these.
    pub async fn write_import(&self, objects: &[ObjectToWrite], related: bool) -> Result<Value, Error> {
        let object = |one: &ObjectToWrite| {
            let mut object = Map::from([
                ("resource_type".to_owned(), one.resource_type.as_str().into()),
                ("physical_resource_id".to_owned(), one.id.as_str().into()),
            ]);
            object.extend(one.name.clone().map(|name| ("resource_name".to_owned(), name.into())));
            Value::Map(object)
        };
        let body = value!({ "objects": (objects.iter().map(object).collect::<Value>()), "related": related });
        self.call(Method::POST, "/imports/template", &vec![], Some(&body)).await
    }

    /// Compares objects with the template of a new stack: `is_empty`, `unconfirmed`, and the `resources` with their
    /// `differences`. `objects` has a `type` and a `resource_id` for each resource.
    pub async fn plan_import(
        &self,
        name: &str,
        request: &StackRequest,
        objects: &Map,
        confirmed: &[String],
    ) -> Result<Value, Error> {
        let query = vec![("dry_run".to_owned(), "True".to_owned())];
        let body = body(name, request, objects, confirmed);
        unwrap(self.call(Method::POST, "/imports", &query, Some(&body)).await?, "import")
    }

    /// Creates a stack that takes over objects, if they are as its template says; returns its ID.
    pub async fn import_stack(
        &self,
        name: &str,
        request: &StackRequest,
        objects: &Map,
        confirmed: &[String],
    ) -> Result<String, Error> {
        let body = body(name, request, objects, confirmed);
        let answer = self.call(Method::POST, "/imports", &vec![], Some(&body)).await?;
        Ok(Stack(unwrap(answer, "stack")?).id().to_owned())
    }
}

fn body(name: &str, request: &StackRequest, objects: &Map, confirmed: &[String]) -> Value {
    let mut body = request.body(Some(name));
    if let Some(body) = body.as_map_mut() {
        body.insert("objects".to_owned(), objects.clone().into());
        body.insert("confirmed".to_owned(), confirmed.iter().collect());
    }
    body
}
