//! Heat's default rules as data (`policies` of reference/rest_api.json).

use std::fmt;

/// The check of a rule, unless the operator replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultCheck {
    pub(super) check: &'static str,
    /// The check of older releases, which is also accepted if the operator does not enforce the new defaults.
    pub(super) deprecated: Option<&'static str>,
}

impl DefaultCheck {
    /// Readers of the project, except stack users.
    pub const READER: Self = Self::replacing("rule:deny_stack_user", "role:reader and project_id:%(project_id)s");
    /// Members of the project, except stack users.
    pub const MEMBER: Self = Self::replacing("rule:deny_stack_user", "role:member and project_id:%(project_id)s");
    /// Administrators.
    pub const ADMIN: Self = Self::replacing("rule:context_is_admin", "role:admin and project_id:%(project_id)s");
    /// The check of older releases, if it was another one.
    pub fn of_older_releases(self) -> Option<&'static str> {
        self.deprecated
    }

    /// Nobody.
    pub const NOBODY: Self = Self::of("rule:deny_everybody");

    const fn of(check: &'static str) -> Self {
        Self { check, deprecated: None }
    }

    const fn replacing(deprecated: &'static str, check: &'static str) -> Self {
        Self { check, deprecated: Some(deprecated) }
    }
}

impl fmt::Display for DefaultCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.check)
    }
}

/// A rule that Heat does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultRule {
    /// Its name.
    pub name: &'static str,
    /// Its check.
    pub check: DefaultCheck,
}

/// Rules with the same check.
pub(super) struct Group {
    pub(super) check: DefaultCheck,
    /// The names of the rules.
    pub(super) names: &'static [&'static str],
}

const STACK_USERS_TOO: &str =
    "(role:reader and project_id:%(project_id)s) or (role:heat_stack_user and project_id:%(project_id)s)";

/// All rules of Heat except those of single resource types.
pub(super) const RULES: &[Group] = &[
    Group {
        check: DefaultCheck::READER,
        names: &[
            "actions:check",
            "build_info:build_info",
            "cloudformation:DescribeStackEvents",
            "cloudformation:DescribeStackResources",
            "cloudformation:DescribeStacks",
            "cloudformation:EstimateTemplateCost",
            "cloudformation:GetTemplate",
            "cloudformation:ListStackResources",
            "cloudformation:ListStacks",
            "cloudformation:ValidateTemplate",
            "events:index",
            "events:show",
            "resource:index",
            "resource:show",
            "software_configs:index",
            "software_configs:show",
            "software_deployments:index",
            "software_deployments:show",
            "stacks:detail",
            "stacks:environment",
            "stacks:files",
            "stacks:index",
            "stacks:list_outputs",
            "stacks:list_resource_types",
            "stacks:list_snapshots",
            "stacks:list_template_functions",
            "stacks:list_template_versions",
            "stacks:preview",
            "stacks:resource_schema",
            "stacks:show",
            "stacks:show_output",
            "stacks:show_snapshot",
            "stacks:template",
        ],
    },
    Group {
        check: DefaultCheck::MEMBER,
        names: &[
            "actions:action",
            "actions:cancel_update",
            "actions:cancel_without_rollback",
            "actions:resume",
            "actions:snapshot",
            "actions:suspend",
            "cloudformation:CancelUpdateStack",
            "cloudformation:CreateStack",
            "cloudformation:DeleteStack",
            "cloudformation:UpdateStack",
            "resource:mark_unhealthy",
            "software_configs:create",
            "software_configs:delete",
            "software_deployments:create",
            "software_deployments:delete",
            "software_deployments:update",
            "stacks:abandon",
            "stacks:create",
            "stacks:delete",
            "stacks:delete_snapshot",
            "stacks:export",
            "stacks:generate_template",
            "stacks:preview_update",
            "stacks:preview_update_patch",
            "stacks:restore_snapshot",
            "stacks:snapshot",
            "stacks:update",
            "stacks:update_patch",
            "stacks:validate_template",
        ],
    },
    Group {
        check: DefaultCheck::replacing("rule:allow_everybody", STACK_USERS_TOO),
        names: &["cloudformation:DescribeStackResource", "resource:metadata", "resource:signal", "stacks:lookup"],
    },
    Group { check: DefaultCheck::of(STACK_USERS_TOO), names: &["software_deployments:metadata"] },
    Group { check: DefaultCheck::ADMIN, names: &["service:index"] },
    Group { check: DefaultCheck::NOBODY, names: &["software_configs:global_index", "stacks:global_index"] },
    Group { check: DefaultCheck::of("rule:stacks:update_patch"), names: &["stacks:update_no_change"] },
    Group { check: DefaultCheck::of("role:admin and is_admin_project:True"), names: &["context_is_admin"] },
    Group { check: DefaultCheck::of("role:admin"), names: &["project_admin"] },
    Group { check: DefaultCheck::of("not role:heat_stack_user"), names: &["deny_stack_user"] },
    Group { check: DefaultCheck::of(""), names: &["allow_everybody"] },
    Group { check: DefaultCheck::of("!"), names: &["deny_everybody"] },
];

/// The check of the rules of these types.
pub(super) const OF_ADMIN_TYPES: DefaultCheck = DefaultCheck::of("rule:project_admin");

/// Resource types for administrators (`rule:project_admin`); all others are available to everybody.
pub(super) const ADMIN_TYPES: &[&str] = &[
    "OS::Blazar::Host",
    "OS::Cinder::EncryptedVolumeType",
    "OS::Cinder::QoSAssociation",
    "OS::Cinder::QoSSpecs",
    "OS::Cinder::Quota",
    "OS::Cinder::VolumeType",
    "OS::Keystone::*",
    "OS::Manila::ShareType",
    "OS::Neutron::ProviderNet",
    "OS::Neutron::QoSBandwidthLimitRule",
    "OS::Neutron::QoSDscpMarkingRule",
    "OS::Neutron::QoSMinimumBandwidthRule",
    "OS::Neutron::QoSMinimumPacketRateRule",
    "OS::Neutron::QoSPolicy",
    "OS::Neutron::Quota",
    "OS::Neutron::Segment",
    "OS::Nova::Flavor",
    "OS::Nova::HostAggregate",
    "OS::Nova::Quota",
    "OS::Octavia::AvailabilityZone",
    "OS::Octavia::AvailabilityZoneProfile",
    "OS::Octavia::Flavor",
    "OS::Octavia::FlavorProfile",
    "OS::Octavia::Quota",
];
