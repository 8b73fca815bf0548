//! Worksheets.

use std::time::Duration;

use jiff::Timestamp;
use kiln_store::worksheet::{WORKSHEET_KEPT, Worksheet, WorksheetKind, WorksheetStore as _};
use kiln_store::{Error, Retention, Store as _};
use uuid::Uuid;

use crate::bed::beds;
use crate::make::PROJECT;

fn worksheet(kind: WorksheetKind, name: Option<&str>) -> Worksheet {
    Worksheet {
        id: Uuid::new_v4(),
        project: PROJECT.to_owned(),
        kind,
        name: name.map(str::to_owned),
        head: r#"{"größe": 1}"#.to_owned(),
        body: "x".repeat(100_000),
        version: 0,
        created: Timestamp::from_second(7).unwrap(),
    }
}

#[tokio::test]
async fn worksheets_belong_to_a_project_and_have_names_of_their_own() {
    use WorksheetKind::{Scan, Template};
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if !(bed.is_sql() && bed.is_shared()) {
            continue;
        }
        let store = bed.again().await;
        let (one, two) = (worksheet(Template, Some("größe")), worksheet(Template, None));
        for new in [&one, &two, &worksheet(Template, None)] {
            store.save_worksheet(new).await.unwrap();
        }
        for other in [
            Worksheet { project: "other".to_owned(), ..worksheet(Template, Some("größe")) },
            worksheet(Scan, Some("größe")),
        ] {
            store.save_worksheet(&other).await.unwrap();
        }
        let taken = store.save_worksheet(&worksheet(Template, Some("größe"))).await;
        assert!(matches!(&taken, Err(Error::NameTaken(name)) if name == "größe"), "{taken:?}");
        assert_eq!(store.worksheet(PROJECT, Template, one.id).await.unwrap().as_ref(), Some(&one));
        assert_eq!(store.worksheet("other", Template, one.id).await.unwrap(), None);
        assert_eq!(store.worksheet(PROJECT, Scan, one.id).await.unwrap(), None);
        let listed = store.worksheets(PROJECT, Template).await.unwrap();
        assert_eq!(listed.len(), 3);
        assert_eq!(listed[2], Worksheet { body: String::new(), ..one.clone() }, "newest first, without bodies");

        let renamed = Worksheet { name: Some("größe".to_owned()), ..two.clone() };
        assert!(matches!(store.change_worksheet(&renamed).await, Err(Error::NameTaken(_))));
        let changed = Worksheet { name: Some("two".to_owned()), body: "{}".to_owned(), ..two.clone() };
        assert!(store.change_worksheet(&changed).await.unwrap());
        assert!(!store.change_worksheet(&changed).await.unwrap(), "it has another version now");
        let read = store.worksheet(PROJECT, Template, two.id).await.unwrap();
        assert_eq!(read, Some(Worksheet { version: 1, ..changed }));

        assert!(!store.delete_worksheet("other", Template, one.id).await.unwrap());
        assert!(store.delete_worksheet(PROJECT, Template, one.id).await.unwrap());
        assert!(!store.delete_worksheet(PROJECT, Template, one.id).await.unwrap());
        bed.end().await;
    }
}

#[tokio::test]
async fn worksheets_expire_and_then_their_names_are_free() {
    use WorksheetKind::Template;
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if !(bed.is_sql() && bed.is_shared()) {
            continue;
        }
        let store = bed.again().await;
        let (old, used) = (worksheet(Template, Some("old")), worksheet(Template, None));
        store.save_worksheet(&old).await.unwrap();
        store.save_worksheet(&used).await.unwrap();
        let age = |days: u64| Duration::from_hours(24 * days).as_micros();
        bed.execute(&format!("UPDATE kiln_worksheet SET changed = changed - {}", age(29))).await;
        assert!(store.change_worksheet(&used).await.unwrap());
        bed.execute(&format!("UPDATE kiln_worksheet SET changed = changed - {}", age(2))).await;
        assert!(WORKSHEET_KEPT < Duration::from_hours(24 * 31));
        let ids: Vec<Uuid> = store.worksheets(PROJECT, Template).await.unwrap().iter().map(|one| one.id).collect();
        assert_eq!(ids, [used.id]);
        assert_eq!(store.worksheet(PROJECT, Template, old.id).await.unwrap(), None);
        store.save_worksheet(&worksheet(Template, Some("old"))).await.unwrap();

        bed.execute(&format!("UPDATE kiln_worksheet SET changed = changed - {}", age(31))).await;
        let retention = Retention { deleted_before: Timestamp::UNIX_EPOCH, operations: 0 };
        assert_eq!(store.forget(&retention).await.unwrap(), 2);
        bed.end().await;
    }
}
