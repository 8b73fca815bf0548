//! The columns of each type that is stored.

use kiln_resource::{SoftwareConfig, SoftwareDeployment};
use sea_orm::sea_query::Expr;

use super::columns::Columns;
use super::row::{
    Cells, Counted, Digests, Ending, Format, Guarded, Json, KindAndContent, Number, OptionalWord, Place, Sealed,
    States, Text, Time, User, Word, row,
};
use super::schema;
use super::secrets::Vault;
use super::statement_retry::Fault;
use crate::take_over::TakeOver;
use crate::{Event, Message, Operation, Orphan, Plan, Resource, Snapshot, Stack, StackSummary};

row! { schema::STACK, Stack {
    id: Word ["id"],
    name: Text ["name"],
    project: Text ["project"],
    parent: Place ["parent_stack", "parent_resource", "parent_name"],
    root: Word ["root"],
    depth: Number ["depth"],
    state: States ["action", "status"],
    reason: Text ["reason"],
    desired: Digests ["desired"],
    previous: Digests ["previous"],
    generation: Number ["generation"],
    settled: Number ["settled"],
    disable_rollback: Number ["disable_rollback"],
    timeout_mins: Number ["timeout_mins"],
    tags: Json ["tags"],
    username: Text ["username"],
    user_id: Text ["user_id"],
    credentials: OptionalWord ["credentials"],
    user_project: Text ["user_project"],
    messages: Number ["messages"],
    details: Json ["details"],
    created: Time ["created"],
    updated: Time ["updated"],
    deleted: Time ["deleted"],
    ; writes: Counted, guards: Counted
} }

row! { schema::STACK, StackSummary {
    id: Word ["id"],
    name: Text ["name"],
    project: Text ["project"],
    parent: OptionalWord ["parent_stack"],
    state: States ["action", "status"],
    reason: Text ["reason"],
    disable_rollback: Number ["disable_rollback"],
    timeout_mins: Number ["timeout_mins"],
    tags: Json ["tags"],
    username: Text ["username"],
    user_project: Text ["user_project"],
    created: Time ["created"],
    updated: Time ["updated"],
    deleted: Time ["deleted"],
} }

row! { schema::RESOURCE, Resource {
    id: Word ["id"],
    stack: Word ["stack"],
    name: Text ["name"],
    resource_type: Text ["type"],
    implementation: Text ["implementation"],
    physical_id: Text ["physical_id"],
    state: States ["action", "status"],
    reason: Text ["reason"],
    operation: Guarded ["step"],
    definition: Guarded ["definition"],
    metadata: Guarded ["metadata"],
    data: Sealed ["data"],
    attributes: Guarded ["attributes"],
    requires: Json ["requires"],
    replaces: OptionalWord ["replaces"],
    replaced_by: OptionalWord ["replaced_by"],
    child: OptionalWord ["child"],
    generation: Number ["generation"],
    created: Time ["created"],
    updated: Time ["updated"],
} }

row! { schema::EVENT, Event {
    id: Word ["id"],
    stack: Word ["stack"],
    root: Word ["root"],
    resource_name: Text ["resource_name"],
    resource_type: Text ["resource_type"],
    physical_id: Text ["physical_id"],
    action: Text ["action"],
    status: Word ["status"],
    reason: Text ["reason"],
    properties: Guarded ["properties"],
    operation: OptionalWord ["operation"],
    time: Time ["time"],
} }

row! { schema::MESSAGE, Message {
    id: Word ["id"],
    stack: Word ["stack"],
    resource: Text ["resource"],
    body: KindAndContent ["kind", "body"],
    due: Time ["due"],
    sent: Time ["sent"],
} }

row! { schema::PLAN, Plan {
    id: Word ["id"],
    project: Text ["project"],
    stack: Word ["stack"],
    stack_name: Text ["stack_name"],
    name: Text ["name"],
    action: Word ["action"],
    generation: Number ["generation"],
    author: User ["user_id", "username"],
    desired: Digests ["desired"],
    digest: Text ["digest"],
    state: Word ["state"],
    body: Sealed ["body"],
    created: Time ["created"],
    expires: Time ["expires"],
} }

row! { schema::OPERATION, Operation {
    id: Word ["id"],
    stack: Word ["stack"],
    root: Word ["root"],
    project: Text ["project"],
    action: Word ["action"],
    generation: Number ["generation"],
    author: User ["user_id", "username"],
    request: Text ["request"],
    desired: Digests ["desired"],
    begun: Time ["begun"],
    end: Ending ["ended", "status", "reason"],
    plan: OptionalWord ["plan"],
} }

row! { schema::ORPHAN, Orphan {
    id: Word ["id"],
    project: Text ["project"],
    stack: Word ["stack"],
    stack_name: Text ["stack_name"],
    path: Text ["path"],
    resource_type: Text ["type"],
    physical_id: Text ["physical_id"],
    region: Text ["region"],
    user_id: Text ["user_id"],
    username: Text ["username"],
    reason: Text ["reason"],
    time: Time ["time"],
} }

row! { schema::SNAPSHOT, Snapshot {
    id: Word ["id"],
    stack: Word ["stack"],
    name: Text ["name"],
    state: States ["action", "status"],
    reason: Text ["reason"],
    data: Sealed ["data"],
    created: Time ["created"],
} }

row! { schema::SOFTWARE_CONFIG, SoftwareConfig {
    id: Text ["id"],
    project: Text ["project"],
    name: Text ["name"],
    group: Text ["namespace"],
    body: Sealed ["body"],
    created: Time ["created"],
} }

row! { schema::SOFTWARE_DEPLOYMENT, SoftwareDeployment {
    id: Text ["id"],
    project: Text ["project"],
    user_project: Text ["user_project"],
    config: Text ["config"],
    server: Text ["server"],
    body: Sealed ["body"],
    created: Time ["created"],
    updated: Time ["updated"],
} }

row! { schema::TAKE_OVER, TakeOver {
    root: Word ["root"],
    project: Text ["project"],
    name: Text ["name"],
    digest: Text ["digest"],
    state: Word ["state"],
    reason: Text ["reason"],
    time: Time ["time"],
} }
