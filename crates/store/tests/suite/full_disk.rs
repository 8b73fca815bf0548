//! SQLite on a disk that is temporarily full. This requires a small file system, which only root can mount; for other
//! users `sql/options.rs` has a test with a file of limited size.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use kiln_resource::Action;
use kiln_store::{Batch, NewStack, SqlStore, Stack, StackRequest, Store};
use uuid::Uuid;

use crate::bed::options;
use crate::make::{TTL, at, claim, engine, resource, stack, text};

/// A file system of a few megabytes, until it is dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount() -> Option<Self> {
        let place = std::env::temp_dir().join(format!("kiln-disk-{}", Uuid::new_v4()));
        std::fs::create_dir(&place).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"]).arg(&place).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(Self(place));
        }
        std::fs::remove_dir(&place).unwrap();
        println!("no small file system can be mounted: left out");
        None
    }

    fn url(&self) -> String {
        format!("sqlite://{}", self.0.join("kiln.db").display())
    }

    /// Uses all space except this number of bytes.
    fn fill(&self, leave: usize) {
        let filler = self.0.join("filler");
        let mut bytes = 4 << 20;
        // Reduces the size until it fits.
        while std::fs::write(&filler, vec![1; bytes]).is_err() {
            bytes -= 4096;
        }
        std::fs::write(&filler, vec![1; bytes.saturating_sub(leave)]).unwrap();
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
        let _ = std::fs::remove_dir(Path::new(&self.0));
    }
}

async fn open(disk: &Disk) -> Arc<SqlStore> {
    Arc::new(SqlStore::open(options(&disk.url())).await.unwrap())
}

/// Creates stacks and requests; returns those that were acknowledged and the number of errors.
async fn write(store: Arc<SqlStore>, writer: usize, rounds: usize) -> (Vec<Stack>, usize) {
    let (mut acknowledged, mut refused) = (Vec::new(), 0);
    for round in 0..rounds {
        let name = format!("s{writer}-{round}-{}", Uuid::new_v4());
        let new = NewStack { desired: text(&name.repeat(200)), ..stack(&name) };
        let Ok(made) = store.create_stack(new).await else {
            refused += 1;
            continue;
        };
        acknowledged.push(made.clone());
        match store.request(made.id, StackRequest::new(Action::Check, at(1))).await {
            Ok(asked) => *acknowledged.last_mut().unwrap() = asked,
            Err(_) => refused += 1,
        }
        let Ok(leases) = store.claim(engine(), TTL, &[made.id], 1).await else {
            refused += 1;
            continue;
        };
        for lease in leases {
            let save = vec![resource(made.id, &"r".repeat(2_000))].into();
            refused += usize::from(store.commit(lease, Batch { save, ..Batch::default() }).await.is_err());
        }
    }
    (acknowledged, refused)
}

async fn write_at_once(store: &Arc<SqlStore>, rounds: usize) -> (Vec<Stack>, usize) {
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        writers.spawn(write(Arc::clone(store), writer, rounds));
    }
    let all = tokio::time::timeout(Duration::from_mins(1), writers.join_all()).await.expect("nobody hangs");
    all.into_iter().fold((Vec::new(), 0), |(mut all, sum), (some, refused)| {
        all.extend(some);
        (all, sum + refused)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_and_is_forgotten() {
    for leave in [0, 20_000, 60_000, 200_000] {
        let Some(disk) = Disk::mount() else { return };
        let store = open(&disk).await;
        store.migrate().await.unwrap();
        let (mut acknowledged, refused) = write_at_once(&store, 2).await;
        assert_eq!(refused, 0);

        disk.fill(leave);
        let (some, refused) = write_at_once(&store, 10).await;
        assert!(refused > 0, "the disk is full");
        acknowledged.extend(some);

        disk.free();
        let (more, refused) = write_at_once(&store, 3).await;
        assert_eq!(refused, 0, "there is space again");
        acknowledged.extend(more);

        // Another process, and the same one after a restart, see everything that was acknowledged.
        let other = open(&disk).await;
        let fresh = tokio::time::timeout(Duration::from_secs(5), other.create_stack(stack("fresh"))).await;
        let fresh = fresh.expect("nobody holds the file").unwrap();
        claim(&*other, engine(), fresh.id).await;
        drop(store);
        drop(other);
        let later = open(&disk).await;
        for stack in acknowledged.into_iter().chain([fresh]) {
            let found = later.stack(stack.id).await.unwrap().expect("a stack that was acknowledged");
            assert!(found.generation >= stack.generation, "a request that was acknowledged");
        }
    }
}
