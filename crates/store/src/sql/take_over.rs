//! Stacks that are taken over from Heat: only commands of operators call this.

use async_trait::async_trait;
use kiln_resource::{SoftwareConfig, SoftwareDeployment};
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, OnConflict, Order, Query, UpdateStatement};

use super::columns::{Columns, plain};
use super::pool::Transaction;
use super::requests::insert_stacks;
use super::row::Row as _;
use super::secrets::CLOSED;
use super::snapshots::save_snapshots;
use super::statement_retry::Fault;
use super::writing::insert;
use super::{SqlStore, schema};
use crate::take_over::{
    Owner, OwnerStore, TakeOver, TakeOverState, TakenSoftware, TakenStack, TakenTree, awaited, waiting,
};
use crate::{Error, Resource, Stack, StackId};

impl SqlStore {
    /// Stores a tree instead of an earlier import of it, or only the record of a refused one. A tree that belongs to Kiln is
    /// not touched: [`Error::Changed`].
    pub async fn take_tree(&self, tree: &TakenTree) -> Result<(), Error> {
        self.retry(|| self.take_once(tree)).await
    }

    async fn take_once(&self, tree: &TakenTree) -> Result<(), Fault> {
        let record = &tree.record;
        let tx = self.begin().await?;
        remove(&tx, record.root).await?;
        let texts = tree.stacks.iter().flat_map(|taken| std::iter::once(&taken.desired).chain(&taken.previous));
        self.store_contents(&tx, texts).await?;
        let is_switched = record.state == TakeOverState::Switched;
        let stored = |taken: &TakenStack| if is_switched { taken.stack.clone() } else { hidden(&taken.stack) };
        let stacks: Vec<Stack> = tree.stacks.iter().map(stored).collect();
        insert_stacks(&tx, &stacks).await?;
        if let Some((id, credentials)) = &tree.credentials {
            let sealed = self.vault.seal(&id.to_string(), credentials.expose())?;
            let plan = self.vault.seal(&super::credentials::plan_row(*id), "{}")?;
            let row = vec![id.to_string().into(), sealed.into(), plan.into(), self.outside.now(), self.outside.now()];
            insert(&tx, schema::CREDENTIALS, &["id", "envelope", "plan", "created", "touched"], vec![row], None)
                .await?;
        }
        let rows = tree.resources.iter().map(|row| row.write(&self.vault)).collect::<Result<_, _>>()?;
        insert(&tx, Resource::TABLE, Resource::COLUMNS, rows, None).await?;
        save_snapshots(&tx, &self.vault, &tree.snapshots).await?;
        self.insert_events(&tx, &tree.events.iter().collect::<Vec<_>>()).await?;
        let row = record.write(&CLOSED)?;
        insert(&tx, TakeOver::TABLE, TakeOver::COLUMNS, vec![row], None).await?;
        tx.commit().await
    }

    /// Stores the software configs and deployments of a project instead of those of an earlier import. Not for a project that
    /// belongs to Kiln.
    pub async fn take_software(&self, project: &str, software: &TakenSoftware) -> Result<(), Error> {
        self.retry(|| async {
            let tx = self.begin().await?;
            for table in [schema::SOFTWARE_DEPLOYMENT, schema::SOFTWARE_CONFIG] {
                let own = Expr::col("project").eq(waiting(project));
                tx.execute(&Query::delete().from_table(table).and_where(own).to_owned()).await?;
            }
            let configs = software.configs.iter().map(|config| {
                let config = kiln_resource::SoftwareConfig { project: waiting(&config.project), ..config.clone() };
                config.write(&self.vault)
            });
            let rows = configs.collect::<Result<_, _>>()?;
            insert(&tx, SoftwareConfig::TABLE, SoftwareConfig::COLUMNS, rows, None).await?;
            let deployments = software.deployments.iter().map(|one| {
                let project = waiting(&one.project);
                SoftwareDeployment { project, ..one.clone() }.write(&self.vault)
            });
            let rows = deployments.collect::<Result<_, _>>()?;
            insert(&tx, SoftwareDeployment::TABLE, SoftwareDeployment::COLUMNS, rows, None).await?;
            tx.commit().await
        })
        .await
    }

    /// The trees that are taken over, of all projects or of one, by project and name.
    pub async fn take_overs(&self, project: Option<&str>) -> Result<Vec<TakeOver>, Error> {
        let mut select = Query::select();
        select.columns(TakeOver::columns()).from(schema::TAKE_OVER);
        if let Some(project) = project {
            select.and_where(Expr::col("project").eq(plain(project)));
        }
        for column in ["project", "name", "root"] {
            select.order_by(column, Order::Asc);
        }
        self.retry(|| async {
            self.reader.query_all(&select).await?.iter().map(|row| Columns::of(row).read()).collect()
        })
        .await
    }

    /// The stacks of an imported tree, parents first, with the projects that they have in Heat.
    pub async fn taken_stacks(&self, root: StackId) -> Result<Vec<Stack>, Error> {
        let select = super::reading::select_all_stacks()
            .and_where(Expr::col("root").eq(root.to_string()))
            .order_by("depth", Order::Asc)
            .order_by("id", Order::Asc)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            let read = |row| {
                let stack: Stack = Columns::of(row).read()?;
                Ok(Stack { project: awaited(&stack.project).to_owned(), ..stack })
            };
            rows.iter().map(read).collect()
        })
        .await
    }

    /// Says who answers for a project from now on, while Kiln stands before a Heat.
    pub async fn set_owner(&self, project: &str, owner: Owner) -> Result<(), Error> {
        self.retry(|| set_owner(&self.writer, project, owner)).await
    }

    /// The projects that are being moved. After a kill, they are until the move is done again.
    pub async fn moving_projects(&self) -> Result<Vec<String>, Error> {
        let moving = Expr::col("owner").eq(Owner::Moving.as_str());
        let select = Query::select().column("project").from(schema::PROJECT_OWNER).and_where(moving).to_owned();
        self.retry(|| async {
            self.reader.query_all(&select).await?.iter().map(|row| Columns::of(row).text()).collect()
        })
        .await
    }

    /// Gives the imported stacks of a project to Kiln, all at once. Returns their number, without nested ones.
    ///
    /// # Errors
    /// [`Error::NameTaken`] if a stack of Kiln in the project has the name of one of them.
    pub async fn switch_project(&self, project: &str) -> Result<u64, Error> {
        self.retry(|| async {
            let tx = self.begin().await?;
            let switched = self.switch_in(&tx, project).await?;
            tx.commit().await?;
            Ok(switched)
        })
        .await
    }

    /// Does the same as [`SqlStore::switch_project`], and takes it back: the project stays with Heat.
    ///
    /// # Errors
    /// Those of [`SqlStore::switch_project`].
    pub async fn rehearse_switch(&self, project: &str) -> Result<u64, Error> {
        self.retry(|| async {
            let tx = self.begin().await?;
            let switched = self.switch_in(&tx, project).await?;
            tx.rollback().await?;
            Ok(switched)
        })
        .await
    }

    async fn switch_in(&self, tx: &Transaction, project: &str) -> Result<u64, Fault> {
        let switched = self.rename_project(tx, &waiting(project), project).await?;
        for table in [schema::SOFTWARE_CONFIG, schema::SOFTWARE_DEPLOYMENT] {
            tx.execute(&rename(table, &waiting(project), project)).await?;
        }
        for state in [TakeOverState::Imported, TakeOverState::Returning] {
            set_state(tx, project, [state, TakeOverState::Switched]).await?;
        }
        set_owner(tx, project, Owner::Kiln).await?;
        Ok(switched)
    }

    /// Begins to give all stacks of a project to Heat, also those that Kiln has made: from now on nobody works on them. Returns
    /// their records. Called again, it goes on.
    ///
    /// # Errors
    /// [`Error::Changed`] names a stack that is being worked on, or has messages.
    pub async fn leave_project(&self, project: &str) -> Result<Vec<TakeOver>, Error> {
        self.retry(|| async {
            let tx = self.begin().await?;
            // The stacks are locked first, so that no request or message comes between.
            let own = Expr::col("project").eq(project);
            let leave = rename(schema::STACK, project, &waiting(project));
            tx.execute(&leave).await?;
            let of_project = Expr::col((schema::STACK, "project")).eq(waiting(project));
            let messages = Query::select()
                .column("stack")
                .from(schema::MESSAGE)
                .and_where(Expr::col("due").is_not_null())
                .to_owned();
            let busy = Query::select()
                .column((schema::STACK, "id"))
                .from(schema::STACK)
                .and_where(of_project.clone())
                .and_where(Expr::col("deleted").is_null())
                .cond_where(
                    Cond::any()
                        .add(Expr::col("settled").lt(Expr::col("generation")))
                        .add(Expr::col("due").is_not_null())
                        .add(Expr::col("id").in_subquery(messages)),
                )
                .limit(1)
                .to_owned();
            if let Some(row) = tx.query_one(&busy).await? {
                return Err(Error::Changed(Columns::of(&row).parsed()?).into());
            }
            for table in [schema::SOFTWARE_CONFIG, schema::SOFTWARE_DEPLOYMENT] {
                tx.execute(
                    &Query::update().table(table).value("project", waiting(project)).and_where(own.clone()).to_owned(),
                )
                .await?;
            }
            set_state(&tx, project, [TakeOverState::Switched, TakeOverState::Returning]).await?;
            set_owner(&tx, project, Owner::Moving).await?;
            let known = Query::select().column("root").from(schema::TAKE_OVER).to_owned();
            let made = Query::select()
                .columns(["id", "name"])
                .from(schema::STACK)
                .and_where(of_project)
                .and_where(Expr::col("deleted").is_null())
                .and_where(Expr::col("parent_stack").is_null())
                .and_where(Expr::col("id").not_in_subquery(known))
                .to_owned();
            let mut rows = Vec::new();
            for row in tx.query_all(&made).await? {
                let mut columns = Columns::of(&row);
                let (root, name) = (columns.text()?, columns.text()?);
                let state = TakeOverState::Returning.as_str();
                let now = self.outside.now();
                rows.push(vec![
                    root.into(),
                    plain(project).into(),
                    name.into(),
                    "".into(),
                    state.into(),
                    "".into(),
                    now,
                ]);
            }
            insert(&tx, TakeOver::TABLE, TakeOver::COLUMNS, rows, None).await?;
            tx.commit().await
        })
        .await?;
        let mut records = self.take_overs(Some(project)).await?;
        records.retain(|record| record.state == TakeOverState::Returning);
        Ok(records)
    }

    /// Notes that a tree is in Heat's tables as it is in Kiln's: it belongs to Heat. `digest`: of Heat's rows.
    pub async fn note_returned(&self, root: StackId, digest: &str) -> Result<(), Error> {
        let update = Query::update()
            .table(schema::TAKE_OVER)
            .value("state", TakeOverState::Imported.as_str())
            .value("digest", digest)
            .and_where(Expr::col("root").eq(root.to_string()))
            .to_owned();
        self.retry(|| async {
            self.writer.execute(&update).await?;
            Ok(())
        })
        .await
    }

    /// The software configs and deployments of a project in Kiln's tables, also while the project belongs to Heat.
    pub async fn taken_software(&self, project: &str) -> Result<TakenSoftware, Error> {
        let own = || Expr::col("project").is_in([project.to_owned(), waiting(project)]);
        let of = |table, columns: &[&'static str]| {
            let columns = columns.iter().copied();
            Query::select().columns(columns).from(table).and_where(own()).order_by("id", Order::Asc).to_owned()
        };
        let configs = of(SoftwareConfig::TABLE, SoftwareConfig::COLUMNS);
        let deployments = of(SoftwareDeployment::TABLE, SoftwareDeployment::COLUMNS);
        self.retry(|| async {
            let mut software = TakenSoftware::default();
            for row in self.reader.query_all(&configs).await? {
                let mut config: SoftwareConfig = Columns::opening(&row, &self.vault).read()?;
                project.clone_into(&mut config.project);
                software.configs.push(config);
            }
            for row in self.reader.query_all(&deployments).await? {
                let mut deployment: SoftwareDeployment = Columns::opening(&row, &self.vault).read()?;
                project.clone_into(&mut deployment.project);
                software.deployments.push(deployment);
            }
            Ok(software)
        })
        .await
    }

    /// Changes the project of the stacks that were taken over. Returns the number of root stacks.
    async fn rename_project(&self, tx: &Transaction, from: &str, to: &str) -> Result<u64, Fault> {
        let taken = Query::select()
            .column("root")
            .from(schema::TAKE_OVER)
            .and_where(Expr::col("project").eq(awaited(from)))
            .to_owned();
        let of_taken = |is_root: bool| {
            let parent = Expr::col("parent_stack");
            rename(schema::STACK, from, to)
                .and_where(Expr::col("root").in_subquery(taken.clone()))
                .and_where(if is_root { parent.is_null() } else { parent.is_not_null() })
                .to_owned()
        };
        let roots = tx.execute(&of_taken(true)).await.map_err(|error| {
            let fault = Fault::from(error);
            if fault.is_duplicate_of(schema::LIVE_NAME) {
                Error::NameTaken(awaited(from).to_owned()).into()
            } else {
                fault
            }
        })?;
        tx.execute(&of_taken(false)).await?;
        Ok(roots.rows_affected())
    }

    /// Removes what was imported of trees that still belong to Heat, and of the software of their projects. Nothing in the
    /// cloud or in Keystone is touched. Returns the number of trees.
    pub async fn drop_take_overs(&self, project: Option<&str>) -> Result<u64, Error> {
        let mut dropped = 0;
        for record in self.take_overs(project).await? {
            if record.state.is_newer_in_kiln() {
                continue;
            }
            self.drop_take_over(record.root).await?;
            self.take_software(&record.project, &TakenSoftware::default()).await?;
            dropped += 1;
        }
        Ok(dropped)
    }

    /// Forgets that stacks have come from a Heat: the way back ends. Nothing else changes. Returns the number of trees.
    ///
    /// # Errors
    /// [`Error::Changed`] for a tree that does not belong to Kiln; errors of the database.
    pub async fn finish_take_overs(&self) -> Result<u64, Error> {
        if let Some(other) = self.take_overs(None).await?.iter().find(|one| one.state != TakeOverState::Switched) {
            return Err(Error::Changed(other.root));
        }
        let delete = Query::delete()
            .from_table(schema::TAKE_OVER)
            .and_where(Expr::col("state").eq(TakeOverState::Switched.as_str()))
            .to_owned();
        self.retry(|| async {
            let tx = self.begin().await?;
            let forgotten = tx.execute(&delete).await?.rows_affected();
            tx.execute(&Query::delete().from_table(schema::PROJECT_OWNER).to_owned()).await?;
            tx.commit().await?;
            Ok(forgotten)
        })
        .await
    }

    /// Removes what was imported of a tree that still belongs to Heat: [`Error::Changed`] if it does not.
    pub async fn drop_take_over(&self, root: StackId) -> Result<(), Error> {
        self.retry(|| async {
            let tx = self.begin().await?;
            remove(&tx, root).await?;
            tx.commit().await
        })
        .await
    }
}

#[async_trait]
impl OwnerStore for SqlStore {
    async fn owner(&self, project: &str) -> Result<Owner, Error> {
        let of = |project: &str| {
            let own = Expr::col("project").eq(plain(project));
            Query::select().column("owner").from(schema::PROJECT_OWNER).and_where(own).to_owned()
        };
        let of_users = Query::select()
            .column("project")
            .from(schema::STACK)
            .and_where(Expr::col("user_project").eq(plain(project)))
            .limit(1)
            .to_owned();
        self.retry(|| async {
            if let Some(row) = self.reader.query_one(&of(project)).await? {
                return Columns::of(&row).parsed();
            }
            let Some(row) = self.reader.query_one(&of_users).await? else { return Ok(Owner::Heat) };
            let of_stack = Columns::of(&row).text()?;
            let row = self.reader.query_one(&of(awaited(&of_stack))).await?;
            row.map_or(Ok(Owner::Heat), |row| Columns::of(&row).parsed())
        })
        .await
    }
}

/// Sets the owner of a project.
async fn set_owner(db: &impl ConnectionTrait, project: &str, owner: Owner) -> Result<(), Fault> {
    if owner == Owner::Heat {
        let own = Expr::col("project").eq(plain(project));
        db.execute(&Query::delete().from_table(schema::PROJECT_OWNER).and_where(own).to_owned()).await?;
        return Ok(());
    }
    let mut insert = Query::insert();
    insert
        .into_table(schema::PROJECT_OWNER)
        .columns(["project", "owner"])
        .values([plain(project).into(), owner.as_str().into()])?
        .on_conflict(OnConflict::column("project").update_column("owner").to_owned());
    db.execute(&insert).await?;
    Ok(())
}

/// The statement that changes the project of the rows of a table.
fn rename(table: &'static str, from: &str, to: &str) -> UpdateStatement {
    Query::update().table(table).value("project", to).and_where(Expr::col("project").eq(from)).to_owned()
}

/// Changes the state of the trees of a project that have the first of two states to the second.
async fn set_state(tx: &Transaction, project: &str, [from, to]: [TakeOverState; 2]) -> Result<(), Fault> {
    let update = Query::update()
        .table(schema::TAKE_OVER)
        .value("state", to.as_str())
        .and_where(Expr::col("project").eq(plain(project)))
        .and_where(Expr::col("state").eq(from.as_str()))
        .to_owned();
    tx.execute(&update).await?;
    Ok(())
}

/// The stack as it is stored until its switch.
fn hidden(stack: &Stack) -> Stack {
    Stack { project: waiting(&stack.project), ..stack.clone() }
}

/// Removes an imported tree with its record.
async fn remove(tx: &Transaction, root: StackId) -> Result<(), Fault> {
    let root_id = root.to_string();
    // The row is locked first: no switch of the tree comes between.
    let record = Query::update()
        .table(schema::TAKE_OVER)
        .value("digest", "")
        .and_where(Expr::col("root").eq(root_id.as_str()))
        .to_owned();
    tx.execute(&record).await?;
    let columns = Query::select()
        .columns(["id", "project", "credentials"])
        .from(schema::STACK)
        .and_where(Expr::col("root").eq(root_id.as_str()))
        .to_owned();
    let (mut stacks, mut credentials) = (Vec::new(), Vec::new());
    for row in tx.query_all(&columns).await? {
        let mut columns = Columns::of(&row);
        stacks.push(columns.text()?);
        let project = columns.text()?;
        if awaited(&project) == project {
            return Err(Error::Changed(root).into());
        }
        credentials.extend(columns.optional_text()?);
    }
    let of_stacks: [&'static str; 7] = [
        schema::RESOURCE,
        schema::EVENT,
        schema::EVENT_ORDER,
        schema::SNAPSHOT,
        schema::TAG,
        schema::LEASE,
        schema::MESSAGE,
    ];
    for stacks in stacks.chunks(500) {
        for table in of_stacks {
            let own = Expr::col("stack").is_in(stacks.iter().map(String::as_str));
            tx.execute(&Query::delete().from_table(table).and_where(own).to_owned()).await?;
        }
        let own = Expr::col("id").is_in(stacks.iter().map(String::as_str));
        tx.execute(&Query::delete().from_table(schema::STACK).and_where(own).to_owned()).await?;
    }
    // The trust itself belongs to Heat and stays.
    let own = Expr::col("id").is_in(credentials);
    tx.execute(&Query::delete().from_table(schema::CREDENTIALS).and_where(own).to_owned()).await?;
    let record =
        Query::delete().from_table(schema::TAKE_OVER).and_where(Expr::col("root").eq(root_id.as_str())).to_owned();
    tx.execute(&record).await?;
    Ok(())
}
