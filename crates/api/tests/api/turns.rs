//! The threads that a project may occupy.

use std::sync::{Arc, Mutex, mpsc};

use http::{Method, StatusCode};
use kiln_service::Limits;

use crate::support::{App, PROJECT, user};

/// While a project occupies all its threads, its own requests wait, and those of others are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_that_computes_delays_only_itself() {
    let first = App::on(App::new().await.store, user(&["member", "reader"]), Limits::default());
    let mut other = user(&["member", "reader"]);
    other.project_id = "other".to_owned();
    let second = first.clone().used_by(other);
    let inside = Arc::new(Mutex::new(0));
    let threads = kiln_stack::threads() - 1;
    // Threads of their own, so that those of the test stay free.
    let (ends, busy): (Vec<_>, Vec<_>) = (0..threads)
        .map(|_| {
            let (end, ended) = mpsc::channel::<()>();
            let (caches, inside) = (first.caches(), Arc::clone(&inside));
            let work = move || {
                let work = caches.threads.within(PROJECT, async move {
                    *inside.lock().expect("a number") += 1;
                    assert!(ended.recv().is_err());
                });
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                runtime.block_on(work);
            };
            (end, std::thread::spawn(work))
        })
        .unzip();
    while *inside.lock().expect("a number") < threads {
        std::thread::yield_now();
    }
    let path = format!("/v1/{PROJECT}/stacks");
    let waiting = tokio::spawn(async move { first.send(Method::GET, &path, None, None).await });
    for _ in 0..20 {
        let answered = second.send(Method::GET, "/v1/other/stacks", None, None).await;
        assert_eq!(answered.status, StatusCode::OK, "{}", answered.text);
    }
    assert!(!waiting.is_finished());
    drop(ends);
    assert_eq!(waiting.await.expect("no panic").status, StatusCode::OK);
    for thread in busy {
        thread.join().expect("no panic");
    }
}
