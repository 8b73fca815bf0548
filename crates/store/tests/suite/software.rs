//! Software configs and deployments.

use kiln_resource::{
    Action, ConfigBody, DeploymentBody, SoftwareChange, SoftwareConfig, SoftwareDeployment, State, Status,
};
use kiln_store::{Batch, ConfigQuery, DeploymentQuery, Error, Resource};
use kiln_value::{Value, value};
use uuid::Uuid;

use crate::bed::beds;
use crate::make::{at, claimed, resource};

fn config(project: &str, name: &str, second: i64) -> SoftwareConfig {
    SoftwareConfig {
        id: Uuid::new_v4().to_string(),
        project: project.to_owned(),
        name: Some(name.to_owned()),
        group: None,
        body: ConfigBody { config: value!("#!/bin/sh"), inputs: vec![value!({"name": "a"})], ..ConfigBody::default() },
        created: at(second),
    }
}

fn deployment(of: &SoftwareConfig, server: &str, second: i64) -> SoftwareDeployment {
    SoftwareDeployment {
        id: Uuid::new_v4().to_string(),
        project: of.project.clone(),
        user_project: Some("users".to_owned()),
        config: of.id.clone(),
        server: server.to_owned(),
        body: DeploymentBody { inputs: value!({"a": "geheim"}), ..DeploymentBody::default() },
        created: at(second),
        updated: None,
    }
}

fn of(project: &str, server: Option<&str>) -> DeploymentQuery {
    DeploymentQuery { project: Some(project.to_owned()), server: server.map(str::to_owned) }
}

#[tokio::test]
async fn configs_are_listed_newest_first_and_never_change() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let made = [config("p1", "b", 1), config("p1", "a", 2), config("p2", "c", 3)];
        for config in &made {
            store.change_software(&SoftwareChange::PutConfig(config.clone())).await.unwrap();
        }
        let other = SoftwareConfig { name: Some("x".to_owned()), ..made[0].clone() };
        store.change_software(&SoftwareChange::PutConfig(other)).await.unwrap();
        assert_eq!(store.software_config(&made[0].id).await.unwrap().as_ref(), Some(&made[0]));
        assert_eq!(store.software_config("none").await.unwrap(), None);
        let list = async |query: ConfigQuery| {
            let listed = store.software_configs(&query).await.unwrap();
            assert!(listed.iter().all(|config| config.body == ConfigBody::default()));
            listed.into_iter().map(|config| config.id).collect::<Vec<_>>()
        };
        let project = Some("p1".to_owned());
        let [first, second, third] = [0, 1, 2].map(|n| made[n].id.clone());
        let query = || ConfigQuery { project: project.clone(), ..ConfigQuery::default() };
        assert_eq!(list(query()).await, [second.clone(), first.clone()]);
        assert_eq!(list(ConfigQuery { limit: Some(1), ..query() }).await, std::slice::from_ref(&second));
        assert_eq!(list(ConfigQuery { limit: Some(0), ..query() }).await, [""; 0]);
        assert_eq!(list(ConfigQuery { marker: Some(second.clone()), ..query() }).await, std::slice::from_ref(&first));
        assert_eq!(list(ConfigQuery { marker: Some("none".into()), ..query() }).await, [second.clone(), first.clone()]);
        assert!(list(ConfigQuery::default()).await.contains(&third));
        assert_eq!(store.count_software_configs("p1").await.unwrap(), 2);
    }
}

#[tokio::test]
async fn deployments_hold_their_configs() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (late, early) = (config("p1", "z", 1), config("p1", "b", 2));
        let made = [deployment(&late, "s1", 3), deployment(&early, "s1", 4), deployment(&early, "s2", 5)];
        let put = |deployment: &SoftwareDeployment| SoftwareChange::PutDeployment(deployment.clone());
        let missing = store.change_software(&put(&made[0])).await;
        assert!(matches!(missing, Err(Error::NotFound(_))), "{missing:?}");
        for config in [&late, &early] {
            store.change_software(&SoftwareChange::PutConfig(config.clone())).await.unwrap();
        }
        for deployment in &made {
            store.change_software(&put(deployment)).await.unwrap();
            store.change_software(&put(deployment)).await.unwrap();
        }
        assert_eq!(store.software_deployments(&of("p1", None)).await.unwrap(), made);
        assert_eq!(store.software_deployments(&of("users", Some("s2"))).await.unwrap(), made[2..]);
        assert_eq!(store.software_deployments(&of("p2", None)).await.unwrap(), []);
        assert_eq!(store.count_software_deployments("p1").await.unwrap(), 3);
        let deployed = store.deployed_configs(&of("users", Some("s1"))).await.unwrap();
        assert_eq!(deployed, [early.clone(), late.clone()], "sorted by name");

        let drop = SoftwareChange::DropConfig(late.id.clone());
        let referenced = store.change_software(&drop).await;
        assert!(matches!(referenced, Err(Error::Referenced(_))), "{referenced:?}");
        assert!(store.is_config_referenced(&late.id).await.unwrap());
        let changed = SoftwareDeployment {
            config: early.id.clone(),
            body: DeploymentBody { status: Some("COMPLETE".into()), outputs: Value::Null, ..made[0].body.clone() },
            updated: Some(at(9)),
            ..made[0].clone()
        };
        for (status, after) in [("IN_PROGRESS", "FAILED"), ("COMPLETE", "COMPLETE")] {
            let body = DeploymentBody { status: Some(status.into()), ..made[2].body.clone() };
            let waiting = SoftwareDeployment { body, ..made[2].clone() };
            store.change_software(&SoftwareChange::ChangeDeployment(waiting)).await.unwrap();
            store.change_software(&SoftwareChange::CancelDeployment(made[2].id.clone())).await.unwrap();
            let cancelled = store.software_deployment(&made[2].id).await.unwrap().unwrap();
            assert_eq!(cancelled.body.status.as_deref(), Some(after));
        }
        store.change_software(&SoftwareChange::ChangeDeployment(changed.clone())).await.unwrap();
        assert_eq!(store.software_deployment(&changed.id).await.unwrap(), Some(changed.clone()));
        store.change_software(&drop).await.unwrap();
        assert_eq!(store.software_config(&late.id).await.unwrap(), None);
        for _ in 0..2 {
            store.change_software(&SoftwareChange::DropDeployment(changed.id.clone())).await.unwrap();
        }
        store.change_software(&SoftwareChange::ChangeDeployment(changed.clone())).await.unwrap();
        assert_eq!(store.software_deployment(&changed.id).await.unwrap(), None, "a change creates nothing");
    }
}

#[tokio::test]
async fn batches_change_configs_under_the_lease() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (stack, lease) = claimed(store, "web").await;
        let (kept, dropped) = (config("p1", "kept", 1), config("p1", "dropped", 2));
        let made = deployment(&kept, "s1", 3);
        let put = [&kept, &dropped].map(|config| SoftwareChange::PutConfig(config.clone()));
        let software = put.into_iter().chain([SoftwareChange::PutDeployment(made.clone())]).collect();
        store.commit(lease, Batch { software, ..Batch::default() }).await.unwrap();
        assert_eq!(store.software_deployment(&made.id).await.unwrap(), Some(made));
        let software = [&kept, &dropped].map(|config| SoftwareChange::DropConfig(config.id.clone())).to_vec();
        let batch = Batch { software, ..Batch::default() };
        store.commit(lease, batch.clone()).await.unwrap();
        assert_eq!(store.software_config(&dropped.id).await.unwrap(), None);
        assert!(store.software_config(&kept.id).await.unwrap().is_some(), "a deployment refers to it");
        store.release(&[lease]).await.unwrap();
        let stale = store.commit(lease, batch).await;
        assert!(matches!(stale, Err(Error::Stale(id)) if id == stack.id), "{stale:?}");
    }
}

#[tokio::test]
async fn resources_are_found_by_the_id_of_their_object() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (stack, lease) = claimed(store, "web").await;
        // Some IDs are URLs, which are longer than the entries of most indexes.
        let long = format!("https://{}", "long/".repeat(2000));
        let mut rows = ["server", "other", "long"].map(|name| resource(stack.id, name));
        rows[0].physical_id = Some("s1".to_owned());
        rows[1].physical_id = Some("s2".to_owned());
        rows[2].physical_id = Some(long.clone());

        store.commit(lease, Batch { save: rows.to_vec().into(), ..Batch::default() }).await.unwrap();
        let found = store.resources_by_physical_id(&stack.project, "s1").await.unwrap();
        assert_eq!(found.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["server"]);
        let found = store.resources_by_physical_id(&stack.project, &long).await.unwrap();
        assert_eq!(found.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["long"]);
        assert!(store.resources_by_physical_id("another", "s1").await.unwrap().is_empty());
        assert!(store.resources_by_physical_id(&stack.project, "s3").await.unwrap().is_empty());
    }
}

fn with(action: Action, status: Status, object: Option<&str>, implementation: &str, row: Resource) -> Resource {
    Resource {
        state: State::new(action, status),
        physical_id: object.map(str::to_owned),
        implementation: implementation.to_owned(),
        ..row
    }
}

#[tokio::test]
async fn creates_without_an_object_are_found_in_the_whole_project() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let store = &*bed.store;
        let (create, net) = (Action::Create, "OS::Neutron::Net");
        let (first, lease) = claimed(store, "first").await;
        let row = |name: &str| resource(first.id, name);
        let save = vec![
            with(create, Status::InProgress, None, net, row("begun")),
            with(create, Status::Failed, None, net, row("lost")),
            with(create, Status::InProgress, Some("n1"), net, row("made")),
            with(create, Status::Complete, None, net, row("done")),
            with(Action::Delete, Status::InProgress, None, net, row("going")),
            with(create, Status::InProgress, None, "OS::Neutron::Nét", row("other")),
        ];
        store.commit(lease, Batch { save: save.into(), ..Batch::default() }).await.unwrap();
        let (second, lease) = claimed(store, "second").await;
        let save = vec![with(create, Status::InProgress, None, net, resource(second.id, "beside"))];
        store.commit(lease, Batch { save: save.into(), ..Batch::default() }).await.unwrap();

        let found = async |project: &str, kind: &str| {
            let rows = store.creates_without_object(project, kind).await.unwrap();
            let mut names: Vec<String> = rows.into_iter().map(|row| row.name).collect();
            names.sort();
            names
        };
        assert_eq!(found(&first.project, net).await, ["begun", "beside", "lost"]);
        assert_eq!(found(&first.project, "OS::Neutron::Nét").await, ["other"]);
        assert_eq!(found(&first.project, "OS::Nova::Server").await, [""; 0]);
        assert_eq!(found("another", net).await, [""; 0]);
    }
}
