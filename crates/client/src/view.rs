//! Views of responses, with accessors for the parts that Kiln's client uses. The complete response is kept, so that
//! newer or other services can return more.

use kiln_value::{Map, Value};

macro_rules! views {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name(pub Value);

        impl $name {
            /// The complete response.
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
    /// A saved plan.
    SavedPlan
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

    /// The reason of the status.
    pub fn reason(&self) -> &str {
        self.text("stack_status_reason")
    }

    /// The outputs of a show: `output_key`, `output_value`, `description`, and `output_error` if it failed.
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

    /// The reason of the status.
    pub fn reason(&self) -> &str {
        self.text("resource_status_reason")
    }

    /// Physical ID; empty if there is none yet.
    pub fn physical_id(&self) -> &str {
        self.text("physical_resource_id")
    }

    /// ID of its stack.
    pub fn stack_id(&self) -> &str {
        link(&self.0, "stack").map(last_segment).unwrap_or_default()
    }

    /// Name of its stack.
    pub fn stack_name(&self) -> Option<&str> {
        link(&self.0, "stack")?.rsplit('/').nth(1)
    }

    /// Names of the resources that depend on it.
    pub fn required_by(&self) -> impl Iterator<Item = &str> {
        self.0.get("required_by").and_then(Value::as_list).unwrap_or_default().iter().filter_map(Value::as_str)
    }

    /// `name/id` of its nested stack.
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

    /// Physical ID; the ID of the stack for an event of the stack itself.
    pub fn physical_id(&self) -> &str {
        self.text("physical_resource_id")
    }

    /// Time: `2026-11-20T07:00:00Z`.
    pub fn time(&self) -> &str {
        self.text("event_time")
    }

    /// ID of its stack.
    pub fn stack_id(&self) -> &str {
        link(&self.0, "stack").map(last_segment).unwrap_or_default()
    }

    /// Name of its stack.
    pub fn stack_name(&self) -> Option<&str> {
        link(&self.0, "stack")?.rsplit('/').nth(1)
    }

    /// Whether it is about the stack itself.
    pub fn is_of_stack(&self) -> bool {
        !self.stack_id().is_empty() && self.stack_id() == self.physical_id()
    }

    /// Whether it is about the pre-flight of an operation that has begun.
    pub fn is_of_preflight(&self) -> bool {
        self.is_of_stack() && self.reason().starts_with("Pre-flight ")
    }
}

impl SavedPlan {
    /// Id.
    pub fn id(&self) -> &str {
        self.text("id")
    }

    /// Digest of what it shows.
    pub fn digest(&self) -> &str {
        self.text("digest")
    }

    /// READY, EXECUTED, REJECTED, EXPIRED or STALE.
    pub fn status(&self) -> &str {
        self.text("status")
    }

    /// What it requests: CREATE, ADOPT, UPDATE or DELETE.
    pub fn action(&self) -> &str {
        self.text("action")
    }

    /// ID of its stack, which may not exist yet.
    pub fn stack_id(&self) -> &str {
        self.text("stack_id")
    }

    /// Name of its stack.
    pub fn stack_name(&self) -> &str {
        self.text("stack_name")
    }

    /// Whether it has fewer approvals than it needs.
    pub fn lacks_approvals(&self) -> bool {
        let needed = self.0.get("approvals_needed").and_then(Value::as_i64).unwrap_or_default();
        let given = self.0.get("approvals").and_then(Value::as_list).map_or(0, <[Value]>::len);
        i64::try_from(given).is_ok_and(|given| given < needed)
    }

    /// When it expires; empty: never.
    pub fn expires(&self) -> &str {
        self.text("expires_at")
    }
}

/// The `href` of the link with the given `rel`.
fn link<'a>(value: &'a Value, rel: &str) -> Option<&'a str> {
    let links = value.get("links")?.as_list()?;
    links.iter().find(|link| link.str_at("rel") == Some(rel))?.str_at("href")
}

fn last_segment(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or_default()
}
