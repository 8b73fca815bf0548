//! Nothing that is written is lost: not with a destination that fails, a process that is killed, a full disk.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln_audit::{AuditMap, Auditor, Destination, Notification, OnFailure, Request, Rules, Spool, Trail};
use tempfile::TempDir;
use uuid::Uuid;

/// A destination that refuses the first deliveries.
#[derive(Default)]
struct Bus {
    kept: Mutex<Vec<String>>,
    refuses: Mutex<u32>,
}

#[async_trait::async_trait]
impl Destination for Bus {
    async fn deliver(&self, notifications: &[Notification]) -> Result<(), String> {
        let mut refuses = self.refuses.lock().unwrap();
        if *refuses > 0 {
            *refuses -= 1;
            return Err("the bus is down".to_owned());
        }
        let path =
            |notification: &Notification| notification.payload.get("requestPath").unwrap().as_str().unwrap().to_owned();
        self.kept.lock().unwrap().extend(notifications.iter().map(path));
        Ok(())
    }
}

fn request(path: &str) -> Request<'_> {
    Request {
        method: "POST",
        path,
        query: None,
        host: "heat:8004",
        client: None,
        agent: None,
        token: "",
        requester: None,
        request_id: "req-1",
        global_request_id: None,
    }
}

fn auditor(spool: &Arc<Spool>, on_failure: OnFailure) -> Auditor {
    Auditor::new(Rules::default(), AuditMap::default(), Trail::Spool(Arc::clone(spool)), on_failure)
}

fn begin(auditor: &Auditor, path: &str) -> bool {
    auditor.begin(&request(path), || Uuid::from_u128(1), "2026-11-29T00:00:00Z".parse().unwrap()).is_ok()
}

/// Delivers until the bus has this many.
async fn deliver(spool: &Spool, bus: &Bus, wanted: usize) -> Vec<String> {
    let has = || bus.kept.lock().unwrap().len() >= wanted;
    let all = async {
        while !has() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = spool.deliver(bus) => unreachable!("it delivers for ever"),
        () = all => {}
        () = tokio::time::sleep(Duration::from_secs(20)) => panic!("{:?}", bus.kept.lock().unwrap()),
    }
    std::mem::take(&mut *bus.kept.lock().unwrap())
}

#[tokio::test]
async fn a_bus_that_is_down_gets_everything_later_in_order() {
    let folder = TempDir::new().unwrap();
    let spool = Arc::new(Spool::open(folder.path(), "one", u64::MAX).unwrap());
    let auditor = auditor(&spool, OnFailure::Continue);
    let bus = Bus { refuses: Mutex::new(1), ..Bus::default() };
    let paths: Vec<String> = (0..1000).map(|number| format!("/{number}")).collect();
    assert!(paths.iter().all(|path| begin(&auditor, path)));
    assert_eq!(deliver(&spool, &bus, 1000).await, paths);
    // The file is empty again, and grows no more than what is not delivered.
    assert!(begin(&auditor, "/last"));
    assert_eq!(deliver(&spool, &bus, 1).await, ["/last"]);
    spool.flush(&bus, Duration::from_secs(5)).await;
    assert_eq!(std::fs::metadata(folder.path().join("one.audit")).unwrap().len(), 0);
}

#[tokio::test]
async fn what_a_killed_process_left_is_delivered_by_another() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("dead.audit");
    {
        let spool = Arc::new(Spool::open(folder.path(), "dead", u64::MAX).unwrap());
        assert!(begin(&auditor(&spool, OnFailure::Continue), "/left"));
        // Killed within a line.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(b"{\"id\": \"0");
        std::fs::write(&path, bytes).unwrap();
    }
    // A process that lives keeps its file.
    let living = Arc::new(Spool::open(folder.path(), "living", u64::MAX).unwrap());
    assert!(begin(&auditor(&living, OnFailure::Continue), "/living"));
    let spool = Spool::open(folder.path(), "next", u64::MAX).unwrap();
    assert_eq!(deliver(&spool, &Bus::default(), 1).await, ["/left"]);
    drop(spool);
    assert_eq!(deliver(&living, &Bus::default(), 1).await, ["/living"]);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_full_spool_refuses_requests_or_lets_them_pass() {
    let folder = TempDir::new().unwrap();
    let spool = Arc::new(Spool::open(folder.path(), "full", 1000).unwrap());
    let (strict, lenient) = (auditor(&spool, OnFailure::Refuse), auditor(&spool, OnFailure::Continue));
    assert!(begin(&strict, "/fits") && !begin(&strict, "/does-not-fit") && begin(&lenient, "/does-not-fit"));
    let bus = Bus::default();
    assert_eq!(deliver(&spool, &bus, 1).await, ["/fits"]);
    // There is room again.
    assert!(begin(&strict, "/fits-again"));
    // A disk that is full: the file cannot grow.
    let full = Spool::open(&folder.path().join("none/../file-in-the-way"), "x", 1);
    assert!(full.is_ok());
    std::fs::write(folder.path().join("file"), "").unwrap();
    let error = Spool::open(&folder.path().join("file"), "x", 1).unwrap_err().to_string();
    assert!(error.contains("file/x.audit: "), "{error}");
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_an_unknown_outcome() {
    struct Outcomes(Mutex<Vec<(String, bool)>>);

    #[async_trait::async_trait]
    impl Destination for Outcomes {
        async fn deliver(&self, notifications: &[Notification]) -> Result<(), String> {
            let outcome = |notification: &Notification| {
                let of = |key: &str| notification.payload.get(key);
                (of("outcome").unwrap().as_str().unwrap().to_owned(), of("reason").is_some())
            };
            self.0.lock().unwrap().extend(notifications.iter().map(outcome));
            Ok(())
        }
    }

    let folder = TempDir::new().unwrap();
    let spool = Arc::new(Spool::open(folder.path(), "one", u64::MAX).unwrap());
    let auditor = auditor(&spool, OnFailure::Continue);
    let now = "2026-11-29T00:00:00Z".parse().unwrap();
    let entry = auditor.begin(&request("/one"), || Uuid::from_u128(1), now).unwrap().unwrap();
    auditor.abandon(entry, Uuid::from_u128(2), now);
    let outcomes = Outcomes(Mutex::default());
    spool.flush(&outcomes, Duration::from_secs(5)).await;
    assert_eq!(*outcomes.0.lock().unwrap(), [("pending".to_owned(), false), ("unknown".to_owned(), false)]);
}
