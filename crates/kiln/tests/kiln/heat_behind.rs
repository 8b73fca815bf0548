//! Kiln stands before a Heat: requests for projects that were not switched reach Heat, and a switch loses none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use http::{HeaderMap, Method, Uri};
use kiln_testcloud::Testcloud;
use sea_orm::ConnectionTrait as _;

use crate::cloud_user::token;
use crate::run::Folder;
use crate::running::Running;
use crate::signed;
use crate::take_over::{Heat, sqlite};
use crate::wire::{send, status};

/// What the answers of Heat begin with.
const OF_HEAT: &str = "from Heat: ";

/// The API of a Heat, which answers everything; what it got.
#[derive(Clone, Default)]
struct HeatApi(Arc<Mutex<Vec<String>>>);

impl HeatApi {
    /// Serves it; its URL.
    async fn serve(&self) -> String {
        self.serve_at("127.0.0.1:0").await
    }

    async fn serve_at(&self, address: &str) -> String {
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let got = Arc::clone(&self.0);
        let answer = async move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let host = headers["host"].to_str().unwrap();
            let request = format!("{method} {uri} {} bytes for {host}", body.len());
            got.lock().unwrap().push(request.clone());
            format!("{OF_HEAT}{request}")
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await.unwrap() });
        url
    }

    fn got(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A service before a Heat: its log, and the addresses of its APIs.
fn before(heat: &Heat, url: &str) -> (Running, String, String) {
    serving(heat, &format!("[kiln]\nheat_api_url = {url}\nheat_cfn_url = {url}\n"))
}

/// A service with more options.
fn serving(heat: &Heat, more: &str) -> (Running, String, String) {
    let text = std::fs::read_to_string(&heat.kiln_conf).unwrap();
    let text = format!("{text}{more}[heat_api_cfn]\nbind_host = 127.0.0.1\nbind_port = 0\n");
    let config = heat.folder.write("before.conf", &text).display().to_string();
    let service = Running::start(heat.folder.kiln(&["serve", "--config-file", &config]));
    let serving = service.wait_for("serving address=");
    let (rest, cfn) = serving.split_once(" cfn=").unwrap();
    let address = rest.split(' ').next().unwrap().to_owned();
    let cfn = cfn.split(' ').next().unwrap().to_owned();
    (service, address, cfn)
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_reach_heat_until_their_project_is_switched() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("behind", "convergence", &cloud, sqlite).await;
    let project = heat.move_to_demo(&cloud).await;
    let api = HeatApi::default();
    let (service, address, cfn) = before(&heat, &api.serve().await);
    let config = heat.folder.path().join("before.conf").display().to_string();
    let doctor = heat.folder.run(&["manage", "doctor", "--config-file", &config]);
    assert!(doctor.out.contains("ok      API of Heat") && !doctor.out.contains("stacks of Heat"), "{doctor:?}");
    assert_eq!(api.got().len(), 2);
    let token = token(&cloud, cloud.users().demo).await;
    let with_token = [("x-auth-token", token.as_str()), ("content-type", "application/json")];

    // Everything of the project goes to Heat as it is, also without a token: Heat refuses it.
    let stacks = format!("/v1/{project}/stacks");
    let arn = format!("/v1/waitcondition/arn%3Aopenstack%3Aheat%3A%3A{project}%3Astacks%2Fweb%2F1%2Fresources%2Fh");
    let action = "/v1/?Action=ListStacks";
    for (to, method, target, headers, body) in [
        (&address, "GET", stacks.as_str(), &with_token[..], ""),
        (&address, "POST", &stacks, &with_token, "{not json"),
        (&address, "PATCH", &format!("{stacks}/web%2Fx?a=%7B"), &[], "{}"),
        (&address, "GET", "/v1/another/stacks", &[], ""),
        (&cfn, "PUT", &arn, &[], "{\"status\": \"SUCCESS\"}"),
        (&cfn, "POST", action, &with_token[..1], "x=1"),
    ] {
        let answer = send(to, method, target, headers, body);
        let expected = format!("{method} {target} {} bytes for {to}", body.len());
        assert!(status(&answer) == 200 && answer.ends_with(&format!("{OF_HEAT}{expected}")), "{answer}");
        assert_eq!(api.got(), [expected]);
    }
    // By an access key: Kiln checks the signature to know the project, and Heat can check it again.
    let (access, secret) = signed::key(&cloud);
    let form = "Action=ListStacks&Version=2010-05-15";
    let by_key = || {
        let (date, authorization) = signed::signed(&cfn, (&access, &secret), form);
        let headers = [("content-type", signed::FORM), (signed::DATE_HEADER, &date), ("authorization", &authorization)];
        send(&cfn, "POST", "/v1/", &headers, form)
    };
    let answer = by_key();
    assert!(answer.ends_with(&format!("{OF_HEAT}POST /v1/ {} bytes for {cfn}", form.len())), "{answer}");
    assert_eq!(api.got().len(), 1);
    assert_eq!(status(&send(&address, "GET", "/v1/another/stacks", &[("via", "1.1 kiln")], "")), 508);
    assert_eq!(status(&send(&address, "GET", "/", &[], "")), 300);
    assert_eq!(api.got(), [""; 0]);

    // Clients go on while the project is switched and goes back, again and again.
    let done = Arc::new(AtomicBool::new(false));
    let asking = {
        let (done, address, stacks, token) = (Arc::clone(&done), address.clone(), stacks.clone(), token.clone());
        std::thread::spawn(move || {
            let mut answers: Vec<&str> = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let answer = send(&address, "GET", &stacks, &[("x-auth-token", &token)], "");
                assert_eq!(status(&answer), 200, "{answer}");
                let who = if answer.contains(OF_HEAT) {
                    "heat"
                } else {
                    assert!(answer.contains("\"web\""), "{answer}");
                    "kiln"
                };
                if answers.last() != Some(&who) {
                    answers.push(who);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            answers
        })
    };
    let only = ["--project", project.as_str()];
    let back = ["--project", project.as_str(), "--back"];
    for way in [&only[..], &back, &only, &back, &only] {
        heat.take_over("switch", way).ok();
        // Requests that wait ask a few times in a second.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    done.store(true, Ordering::Relaxed);
    assert_eq!(asking.join().unwrap(), ["heat", "kiln", "heat", "kiln", "heat", "kiln"]);
    api.got();

    // Now Kiln answers, in both APIs and for the users of its stacks; other projects are still Heat's.
    let users = "UPDATE kiln_stack SET user_project = 'users' WHERE name = 'web'";
    heat.db.execute_unprepared(users).await.unwrap();
    assert_eq!(status(&send(&address, "GET", "/v1/users/stacks", &[], "")), 401);
    let signal = send(&cfn, "PUT", &arn, &[], "{}");
    assert!(status(&signal) == 400 && !signal.contains(OF_HEAT), "{signal}");
    let list = send(&cfn, "GET", action, &with_token[..1], "");
    assert!(status(&list) == 200 && list.contains("<StackName>web</StackName>"), "{list}");
    assert!(by_key().contains("<StackName>web</StackName>"));
    assert_eq!(api.got(), [""; 0]);
    assert!(send(&address, "GET", "/v1/another/stacks", &[], "").contains(OF_HEAT));
    assert_eq!(service.stop().0, 0);

    // As long as a service passes requests on, Heat's tables stay.
    let words = ["manage", "take-over", "finish", "--config-file", &config, "--heat-config"];
    let source = heat.folder.path().join("heat.conf").display().to_string();
    let refused = heat.folder.run(&[&words[..], &[&source, "--drop-heat-tables", "heat.db"]].concat());
    assert!(refused.code == 1 && refused.err.contains("remove [kiln] heat_api_url"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_is_killed_or_refused_loses_no_project() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("held", "convergence", &cloud, sqlite).await;
    let project = heat.move_to_demo(&cloud).await;
    let api = HeatApi::default();
    let (service, address, _) = before(&heat, &api.serve().await);
    let (stacks, only) = (format!("/v1/{project}/stacks"), ["--project", project.as_str()]);
    let is_heats = || send(&address, "GET", &stacks, &[], "").contains(OF_HEAT);

    // What cannot be imported stays with Heat.
    heat.import(&[]);
    let busy = "UPDATE stack SET status = 'IN_PROGRESS' WHERE name = 'web'";
    heat.db.execute_unprepared(busy).await.unwrap();
    assert_eq!(heat.take_over("switch", &only).code, 1);
    assert!(is_heats());
    let words = ["manage", "take-over", "switch", "--config-file", &heat.kiln_conf, "--heat-config"];
    let source = heat.folder.path().join("heat.conf").display().to_string();
    let words = [&words[..], &[&source], &only].concat();
    let owner = || heat.values("SELECT owner FROM kiln_project_owner");
    let idle = "UPDATE stack SET status = 'COMPLETE' WHERE name = 'web'";
    let moving = async || {
        while owner().await != ["moving"] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // What is in progress is waited for: before requests wait, and what has begun shortly before.
    let mut switching = heat.folder.kiln(&[&words[..], &["--wait-timeout", "60"]].concat()).spawn().unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(owner().await, [""; 0]);
    assert!(is_heats());
    heat.db.execute_unprepared(idle).await.unwrap();
    moving().await;
    heat.db.execute_unprepared(busy).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    // No fence stops it.
    heat.db.execute_unprepared(idle).await.unwrap();
    assert_eq!(switching.wait().unwrap().code(), Some(0));
    assert_eq!(owner().await, ["kiln"]);
    heat.take_over("switch", &["--project", &project, "--back"]).ok();
    assert_eq!(owner().await, [""; 0]);
    assert!(is_heats());

    // Killed: requests wait, until it is done again.
    let mut switching = heat.folder.kiln(&words).spawn().unwrap();
    moving().await;
    switching.kill().unwrap();
    switching.wait().unwrap();
    let told = heat.take_over("status", &["-f", "value"]);
    assert!(told.err.contains(&format!("requests for project {project} wait")), "{told:?}");
    let waiting = {
        let (address, stacks) = (address.clone(), stacks.clone());
        std::thread::spawn(move || send(&address, "GET", &stacks, &[], ""))
    };
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!waiting.is_finished());
    heat.take_over("switch", &only).ok();
    assert_eq!(status(&waiting.join().unwrap()), 401);
    assert_eq!(service.stop().0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_urls_are_set_and_lead_to_servers() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let folder = Folder::new("heat-urls");
    for (options, told) in [
        ("heat_api_url = http://127.0.0.1:1\n", "[kiln] heat_api_url and heat_cfn_url: set both"),
        ("heat_api_url = 127.0.0.1:1\nheat_cfn_url = http://127.0.0.1:1\n", "[kiln] heat_api_url"),
        ("heat_api_url = http://127.0.0.1:1/?a=b\ncfn_api = false\n", "the URL of an HTTP server, without a query"),
    ] {
        let config = folder.configured(&cloud, &format!("[kiln]\n{options}"));
        for words in [["config", "check", &config].as_slice(), &["serve", "--config-file", &config]] {
            let ran = folder.run(words);
            assert!(ran.code != 0 && format!("{}{}", ran.out, ran.err).contains(told), "{ran:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heat_that_is_down_does_not_stop_the_projects_of_kiln() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("down", "convergence", &cloud, sqlite).await;
    let project = heat.move_to_demo(&cloud).await;
    // It takes connections, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (service, address, cfn) = before(&heat, &format!("http://{}", silent.local_addr().unwrap()));
    heat.take_over("switch", &["--project", project.as_str()]).ok();
    let hanging: Vec<_> = (0..20)
        .map(|_| {
            let address = address.clone();
            std::thread::spawn(move || send(&address, "GET", "/v1/another/stacks", &[], ""))
        })
        .collect();
    let token = token(&cloud, cloud.users().demo).await;
    let list = send(&address, "GET", &format!("/v1/{project}/stacks"), &[("x-auth-token", &token)], "");
    assert!(status(&list) == 200 && list.contains("\"web\""), "{list}");
    // All that wait are told when it dies.
    while hanging.iter().any(|one| !one.is_finished()) {
        silent.set_nonblocking(true).unwrap();
        drop(silent.accept());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for one in hanging {
        let answer = one.join().unwrap();
        assert!(status(&answer) == 502 && answer.contains("Heat has not answered"), "{answer}");
    }
    let place = silent.local_addr().unwrap().to_string();
    drop(silent);
    let refused = send(&address, "GET", "/v1/another/stacks", &[], "");
    assert!(status(&refused) == 503 && refused.contains("retry-after: 5"), "{refused}");
    let signal = "/v1/waitcondition/arn%3Aopenstack%3Aheat%3A%3Aanother%3Astacks%2Fweb%2F1%2Fresources%2Fh";
    // Guests send no signal twice, so it waits for the Heat that is started again.
    let waiting = std::thread::spawn(move || send(&cfn, "PUT", signal, &[], "{}"));
    service.wait_for("a signal waits for Heat");
    assert!(!waiting.is_finished());
    HeatApi::default().serve_at(&place).await;
    let answer = waiting.join().unwrap();
    assert!(status(&answer) == 200 && answer.contains(OF_HEAT), "{answer}");
    assert_eq!(service.stop().0, 0);
}

/// Two operators do the same at the same time, and one rehearses meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn two_switches_of_a_project_end_as_one() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("twice", "convergence", &cloud, sqlite).await;
    let project = heat.move_to_demo(&cloud).await;
    let api = HeatApi::default();
    // A Heat behind a path.
    let (service, address, _) = before(&heat, &format!("{}/orchestration/", api.serve().await));
    let stacks = format!("/v1/{project}/stacks");
    let answered = || send(&address, "GET", &stacks, &[], "");
    assert!(answered().contains(&format!("{OF_HEAT}GET /orchestration{stacks}")), "{}", answered());
    let source = heat.folder.path().join("heat.conf").display().to_string();
    let words = ["manage", "take-over", "switch", "--config-file", &heat.kiln_conf, "--heat-config", &source];
    let words = [&words[..], &["--project", &project]].concat();
    let owner = || heat.values("SELECT owner FROM kiln_project_owner");
    for round in 0..3 {
        for (more, ends_with) in [(&["--rehearse"][..], "kiln"), (&["--back"], "")] {
            let begin = |more: &[&str]| heat.folder.kiln(&[&words[..], more].concat()).spawn().unwrap();
            let back = if ends_with.is_empty() { &["--back"][..] } else { &[] };
            let mut all = [begin(back), begin(back), begin(more)];
            let codes: Vec<_> = all.iter_mut().map(|one| one.wait().unwrap().code()).collect();
            let done = codes[..2].contains(&Some(0));
            assert!(done && codes.iter().all(|code| matches!(code, Some(0 | 1))), "{round} {more:?}: {codes:?}");
            assert_eq!(owner().await.concat(), ends_with, "{round} {more:?}: {codes:?}");
            // Without a token, Kiln refuses it, and the double of Heat answers.
            assert_eq!(status(&answered()), if ends_with.is_empty() { 200 } else { 401 }, "{round} {more:?}");
        }
    }
    assert_eq!(service.stop().0, 0);
}

/// A service looks for stacks of a Heat in tables that `finish` drops.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_goes_on_when_the_tables_of_heat_are_dropped() {
    let cloud = Testcloud::builder().start().await.unwrap();
    let heat = Heat::load("finish-serving", "convergence", &cloud, sqlite).await;
    let project = heat.move_to_demo(&cloud).await;
    let (service, address, _) = serving(&heat, "");
    let token = token(&cloud, cloud.users().demo).await;
    let stacks = format!("/v1/{project}/stacks");
    let list = || send(&address, "GET", &stacks, &[("x-auth-token", token.as_str())], "");
    assert_eq!(status(&list()), 503, "they belong to Heat");
    heat.import(&[]);
    heat.take_over("switch", &["--project", &project]).ok();
    // It notices a switch within some seconds.
    let start = std::time::Instant::now();
    while status(&list()) != 200 {
        assert!(start.elapsed() < Duration::from_secs(20), "{}", list());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let before = service.log().len();
    heat.take_over("finish", &["--drop-heat-tables", "heat.db"]).ok();
    for _ in 0..70 {
        let answer = list();
        assert!(status(&answer) == 200 && answer.contains("\"web\""), "{answer}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let log = service.log().split_off(before);
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
    assert_eq!(service.stop().0, 0);
}
