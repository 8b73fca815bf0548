//! Which object a stack takes over. Two stacks cannot take over the same one, nor one that a resource has.

use std::collections::BTreeSet;

use kiln_value::Value;

use crate::{Snapshot, Stack};

/// An object that can belong to one resource of a project only.
///
/// The IDs of most objects are unique in a cloud. The others, such as names, are unique for their type; names of key pairs also
/// for their user. The types of AWS have the objects of OpenStack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectClaim {
    /// The ID of the object in its service.
    pub id: String,
    /// In which kind of objects the ID is unique; empty: in all.
    kind: String,
}

impl ObjectClaim {
    /// The object of a resource of this type, in a stack of this user. `None`: the type has no object in the cloud.
    pub fn of(resource_type: &str, id: &str, user_id: &str) -> Option<Self> {
        let has_none = ["OS::Heat::", "AWS::CloudFormation::"].iter().any(|prefix| resource_type.starts_with(prefix));
        if has_none || id.is_empty() {
            return None;
        }
        let kind = match resource_type {
            "AWS::S3::Bucket" | "OS::Swift::Container" => "container".to_owned(),
            "OS::Nova::KeyPair" => format!("key pair of {user_id}"),
            // They have the ID of the volume, or of the user.
            attachment if attachment.ends_with("VolumeAttachment") => "attachment".to_owned(),
            roles if roles.ends_with("RoleAssignments") => roles.to_owned(),
            _ if uuid::Uuid::try_parse(id).is_ok() => String::new(),
            other => other.to_owned(),
        };
        Some(Self { id: id.to_owned(), kind })
    }

    /// Who has an object, for errors.
    pub(crate) fn owner(resource: &str, root: &Stack) -> String {
        format!("the resource {resource} of the stack {}", root.name)
    }

    /// Who takes over an object, for errors.
    pub(crate) fn claimant(stack: &Stack) -> String {
        format!("the stack {}, which takes it over", stack.name)
    }

    /// The key of its row.
    pub(crate) fn key(&self) -> String {
        crate::Digest::of(&format!("{}\n{}", self.kind, self.id)).0
    }
}

impl Snapshot {
    /// The objects in data to adopt, those of nested stacks included.
    pub(crate) fn claims(&self, user_id: &str) -> BTreeSet<ObjectClaim> {
        let mut claims = BTreeSet::new();
        if !self.is_listed() {
            collect(&self.data, user_id, &mut claims);
        }
        claims
    }
}

fn collect(data: &Value, user_id: &str, claims: &mut BTreeSet<ObjectClaim>) {
    for entry in data.get("resources").and_then(Value::as_map).into_iter().flat_map(|all| all.values()) {
        if let (Some(kind), Some(id)) = (entry.str_at("type"), entry.str_at("resource_id")) {
            claims.extend(ObjectClaim::of(kind, id, user_id));
        }
        collect(entry, user_id, claims);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";

    fn is_same(one: (&str, &str, &str), other: (&str, &str, &str)) -> bool {
        ObjectClaim::of(one.0, one.1, one.2).unwrap() == ObjectClaim::of(other.0, other.1, other.2).unwrap()
    }

    #[test]
    fn an_object_is_the_same_whatever_the_type_calls_it() {
        assert!(is_same(("OS::Nova::Server", ID, "a"), ("AWS::EC2::Instance", ID, "b")));
        assert!(is_same(("OS::Swift::Container", "logs", "a"), ("AWS::S3::Bucket", "logs", "b")));
        assert!(!is_same(("OS::Cinder::Volume", ID, "a"), ("OS::Cinder::VolumeAttachment", ID, "a")));
        assert!(!is_same(("OS::Keystone::User", ID, "a"), ("OS::Keystone::UserRoleAssignments", ID, "a")));
        assert!(!is_same(("OS::Swift::Container", "web", "a"), ("OS::Nova::KeyPair", "web", "a")));
        assert!(!is_same(("OS::Nova::KeyPair", "web", "a"), ("OS::Nova::KeyPair", "web", "b")));
        assert_eq!(ObjectClaim::of("OS::Heat::RandomString", "x", "a"), None);
    }

    #[test]
    fn the_objects_of_nested_stacks_are_claimed_too() {
        let net = |id: &str| kiln_value::value!({"type": "OS::Neutron::Net", "resource_id": id});
        let group =
            kiln_value::value!({"type": "OS::Heat::ResourceGroup", "resource_id": "g", "resources": {"0": (net("b"))}});
        let data = kiln_value::value!({"resources": {"one": (net("a")), "group": group}});
        let mut claims = BTreeSet::new();
        collect(&data, "u", &mut claims);
        assert_eq!(claims.iter().map(|claim| claim.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }
}
