//! The types of `OS::Heat`: those without a cloud, and stacks of other services.

mod access_policy;
pub(crate) mod agent;
mod auto_scaling_group;
pub mod chain;
mod cloud_config;
mod copied_settings;
mod delay;
mod deployed_server;
mod deployment;
pub mod deployments;
mod derived_config;
pub mod group;
mod instance_group;
mod members;
pub(crate) mod multipart;
mod none;
pub(crate) mod push;
mod random_string;
pub mod rolling;
mod scaling_group;
mod scaling_limits;
mod scaling_policy;
mod signal_place;
pub mod signal_url;
mod software_config;
mod stack;
pub(crate) mod stack_user;
pub mod structured;
mod swift_signal;
mod swift_signal_handle;
mod test_resource;
mod value;
mod wait_condition;
pub mod wait_handle;

use std::sync::Arc;

use kiln_resource::{Driver, DriverKind, ResourceType};

/// The driver of a placeholder or of a type of `OS::Heat`, if it has one here.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    if resource_type.driver == DriverKind::Placeholder {
        return Some(Arc::new(none::None));
    }
    Some(match resource_type.name.as_str() {
        "OS::Heat::AccessPolicy" => Arc::new(access_policy::AccessPolicy),
        "OS::Heat::AutoScalingGroup" => Arc::new(auto_scaling_group::AutoScalingGroup),
        "OS::Heat::Delay" => Arc::new(delay::Delay),
        "OS::Heat::RandomString" => Arc::new(random_string::RandomString),
        "OS::Heat::ResourceChain" => Arc::new(chain::ResourceChain),
        "OS::Heat::ResourceGroup" => Arc::new(group::ResourceGroup),
        "OS::Heat::InstanceGroup" => Arc::new(instance_group::InstanceGroup::Fixed),
        "AWS::AutoScaling::AutoScalingGroup" => Arc::new(instance_group::InstanceGroup::Scaling),
        "OS::Heat::ScalingPolicy" => Arc::new(scaling_policy::ScalingPolicy(scaling_policy::HOT)),
        "AWS::AutoScaling::ScalingPolicy" => Arc::new(scaling_policy::ScalingPolicy(scaling_policy::CFN)),
        "OS::Heat::DeployedServer" => Arc::new(deployed_server::DeployedServer),
        "OS::Heat::SoftwareDeploymentGroup"
        | "OS::Heat::SoftwareDeployments"
        | "OS::Heat::StructuredDeploymentGroup"
        | "OS::Heat::StructuredDeployments" => Arc::new(deployments::Deployments::of_type(&resource_type.name)?),
        "OS::Heat::SoftwareDeployment" | "OS::Heat::StructuredDeployment" => Arc::new(deployment::Deployment),
        "OS::Heat::SoftwareConfig"
        | "OS::Heat::StructuredConfig"
        | "OS::Heat::SoftwareComponent"
        | "OS::Heat::CloudConfig"
        | "OS::Heat::MultipartMime" => Arc::new(software_config::Config::of_type(&resource_type.name)?),
        "OS::Heat::Stack" => Arc::new(stack::RemoteStack),
        "OS::Heat::SwiftSignal" => Arc::new(swift_signal::SwiftSignal),
        "OS::Heat::SwiftSignalHandle" => Arc::new(swift_signal_handle::SwiftSignalHandle),
        "OS::Heat::TestResource" => Arc::new(test_resource::TestResource),
        "OS::Heat::WaitCondition" => Arc::new(wait_condition::WaitCondition::Heat),
        "AWS::CloudFormation::WaitCondition" => Arc::new(wait_condition::WaitCondition::Cfn),
        "OS::Heat::WaitConditionHandle"
        | "AWS::CloudFormation::WaitConditionHandle"
        | "OS::Heat::UpdateWaitConditionHandle" => Arc::new(wait_handle::WaitHandle::of_type(&resource_type.name)?),
        "OS::Heat::Value" => Arc::new(value::HeatValue),
        _ => return None,
    })
}
