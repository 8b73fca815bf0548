//! What the service gives, with names for the parts that Kiln's own client reads. Nothing is lost: the answer
//! itself is kept, so that newer or foreign services can say more.

use kiln_value::{Map, Value};

macro_rules! views {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name(pub Value);

        impl $name {
            /// The whole answer.
            pub fn value(&self) -> &Value {
                &self.0
            }

            /// Its entries.
            pub fn entries(&self) -> Option<&Map> {
                self.0.as_map()
            }

            fn text(&self, key: &str) -> &str {
                self.0.str_at(key).unwrap_or_default()
            }
        }
    )*};
}

views! {
    /// A stack: `stack` of a show, or an item of `stacks`.
    Stack
    /// A resource.
    Resource
    /// An event.
    Event
}

impl Stack {
    /// Id.
    pub fn id(&self) -> &str {
        self.text("id")
    }

    /// Name.
    pub fn name(&self) -> &str {
        self.text("stack_name")
    }

    /// Action and status: `CREATE_COMPLETE`.
    pub fn status(&self) -> &str {
        self.text("stack_status")
    }

    /// Why it is in this status.
    pub fn reason(&self) -> &str {
        self.text("stack_status_reason")
    }

    /// The outputs of a show: `output_key`, `output_value`, `description`, perhaps `output_error`.
    pub fn outputs(&self) -> &[Value] {
        self.0.get("outputs").and_then(Value::as_list).unwrap_or_default()
    }
}

impl Resource {
    /// Name in the template.
    pub fn name(&self) -> &str {
        self.text("resource_name")
    }

    /// Type.
    pub fn kind(&self) -> &str {
        self.text("resource_type")
    }

    /// Action and status.
    pub fn status(&self) -> &str {
        self.text("resource_status")
    }

    /// Why it is in this status.
    pub fn reason(&self) -> &str {
        self.text("resource_status_reason")
    }

    /// Id in the cloud; empty if there is none yet.
    pub fn physical_id(&self) -> &str {
        self.text("physical_resource_id")
    }

    /// Id of the stack it belongs to.
    pub fn stack_id(&self) -> &str {
        link(&self.0, "stack").map(last_segment).unwrap_or_default()
    }

    /// Name of the stack it belongs to.
    pub fn stack_name(&self) -> Option<&str> {
        link(&self.0, "stack")?.rsplit('/').nth(1)
    }

    /// `name/id` of the nested stack that it stands for.
    pub fn nested(&self) -> Option<&str> {
        let url = link(&self.0, "nested")?;
        url.split_once("/stacks/").map(|(_, identity)| identity)
    }
}

impl Event {
    /// Id.
    pub fn id(&self) -> &str {
        self.text("id")
    }

    /// Name of the resource, or of the stack for an event of the stack itself.
    pub fn resource_name(&self) -> &str {
        self.text("resource_name")
    }

    /// Action and status.
    pub fn status(&self) -> &str {
        self.text("resource_status")
    }

    /// Reason.
    pub fn reason(&self) -> &str {
        self.text("resource_status_reason")
    }

    /// Id in the cloud; the stack's id for an event of the stack itself.
    pub fn physical_id(&self) -> &str {
        self.text("physical_resource_id")
    }

    /// When: `2026-11-20T07:00:00Z`.
    pub fn time(&self) -> &str {
        self.text("event_time")
    }

    /// Id of the stack it happened in.
    pub fn stack_id(&self) -> &str {
        link(&self.0, "stack").map(last_segment).unwrap_or_default()
    }

    /// Name of the stack it happened in.
    pub fn stack_name(&self) -> Option<&str> {
        link(&self.0, "stack")?.rsplit('/').nth(1)
    }

    /// Whether it is about the stack itself.
    pub fn is_of_stack(&self) -> bool {
        !self.stack_id().is_empty() && self.stack_id() == self.physical_id()
    }
}

/// The `href` of the link of a kind.
fn link<'a>(value: &'a Value, rel: &str) -> Option<&'a str> {
    let links = value.get("links")?.as_list()?;
    links.iter().find(|link| link.str_at("rel") == Some(rel))?.str_at("href")
}

fn last_segment(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or_default()
}
