//! Software configs and deployments.

use async_trait::async_trait;
use kiln_resource::{Action, Resource, SoftwareChange, SoftwareConfig, SoftwareDeployment, Status};
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::{Cond, Expr, ExprTrait, Func, OnConflict, Order, Query, SelectStatement};

use super::columns::{Columns, plain};
use super::pool::Transaction;
use super::reading::belongs_to_kiln;
use super::row::Row as _;
use super::statement_retry::Fault;
use super::writing::insert;
use super::{SqlStore, schema};
use crate::Error;
use crate::software_store::{ConfigQuery, DeploymentQuery, SoftwareStore};

#[async_trait]
impl SoftwareStore for SqlStore {
    async fn change_software(&self, change: &SoftwareChange) -> Result<(), Error> {
        self.retry(|| async {
            let tx = self.begin().await?;
            check(&tx, change).await?;
            self.change_software_in(&tx, change).await?;
            tx.commit().await
        })
        .await
    }

    async fn software_config(&self, id: &str) -> Result<Option<SoftwareConfig>, Error> {
        let select = select_configs(true).and_where(schema::is_one_of("id", [plain(id)])).to_owned();
        self.retry(|| async {
            let row = self.reader.query_one(&select).await?;
            row.map(|row| Columns::opening(&row, &self.vault).read()).transpose()
        })
        .await
    }

    async fn software_configs(&self, query: &ConfigQuery) -> Result<Vec<SoftwareConfig>, Error> {
        let mut select = select_configs(false);
        if let Some(project) = &query.project {
            select.and_where(Expr::col("project").eq(plain(project)));
        }
        select.order_by("created", Order::Desc).order_by("id", Order::Desc);
        if let Some(limit) = query.limit {
            select.limit(limit);
        }
        self.retry(|| async {
            let mut select = select.clone();
            if let Some(marker) = &query.marker
                && let Some((created, id)) = self.place_of_config(marker).await?
            {
                let same_time = Cond::all().add(Expr::col("created").eq(created)).add(Expr::col("id").lt(id));
                select.cond_where(Cond::any().add(Expr::col("created").lt(created)).add(same_time));
            }
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| Columns::opening(row, &self.vault).read()).collect()
        })
        .await
    }

    async fn count_software_configs(&self, project: &str) -> Result<u64, Error> {
        self.count_rows(schema::SOFTWARE_CONFIG, Cond::all().add(Expr::col("project").eq(plain(project)))).await
    }

    async fn software_deployment(&self, id: &str) -> Result<Option<SoftwareDeployment>, Error> {
        let select = select_deployments(Cond::all().add(schema::is_one_of("id", [plain(id)])));
        self.retry(|| async {
            let row = self.reader.query_one(&select).await?;
            row.map(|row| Columns::opening(&row, &self.vault).read()).transpose()
        })
        .await
    }

    async fn software_deployments(&self, query: &DeploymentQuery) -> Result<Vec<SoftwareDeployment>, Error> {
        let select = select_deployments(deployments_of(query));
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| Columns::opening(row, &self.vault).read()).collect()
        })
        .await
    }

    async fn count_software_deployments(&self, project: &str) -> Result<u64, Error> {
        let query = DeploymentQuery { project: Some(project.to_owned()), server: None };
        self.count_rows(schema::SOFTWARE_DEPLOYMENT, deployments_of(&query)).await
    }

    async fn deployed_configs(&self, query: &DeploymentQuery) -> Result<Vec<SoftwareConfig>, Error> {
        let of = |column: &'static str| Expr::col((schema::SOFTWARE_CONFIG, column));
        let deployed = Query::select()
            .expr_as(Expr::col("config"), "deployed")
            .expr_as(Expr::col("created"), "since")
            .expr_as(Expr::col("id"), "deployment")
            .from(schema::SOFTWARE_DEPLOYMENT)
            .cond_where(deployments_of(query))
            .to_owned();
        let select = Query::select()
            .exprs(SoftwareConfig::columns().map(of))
            .from(schema::SOFTWARE_CONFIG)
            .join_subquery(
                sea_orm::sea_query::JoinType::InnerJoin,
                deployed,
                "of_server",
                of("id").eq(Expr::col(("of_server", "deployed"))),
            )
            .order_by(("of_server", "since"), Order::Asc)
            .order_by(("of_server", "deployment"), Order::Asc)
            .to_owned();
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            let configs = rows.iter().map(|row| Columns::opening(row, &self.vault).read());
            let mut configs: Vec<SoftwareConfig> = configs.collect::<Result<_, Fault>>()?;
            configs.sort_by_key(|config| config.name.clone());
            Ok(configs)
        })
        .await
    }

    async fn resources_by_physical_id(&self, project: &str, id: &str) -> Result<Vec<Resource>, Error> {
        self.resources_of_project(Some(project), with_object(id)).await
    }

    async fn creates_without_object(&self, project: &str, implementation: &str) -> Result<Vec<Resource>, Error> {
        let of_create = Cond::all()
            .add(Expr::col("physical_id").is_null())
            .add(Expr::col("implementation").eq(plain(implementation)))
            .add(Expr::col("action").eq(Action::Create.as_str()))
            .add(Expr::col("status").ne(Status::Complete.as_str()));
        self.resources_of_project(Some(project), of_create).await
    }

    async fn is_config_referenced(&self, id: &str) -> Result<bool, Error> {
        let select = references(id);
        self.retry(|| async { Ok(self.reader.query_one(&select).await?.is_some()) }).await
    }
}

/// Resources whose object has this ID.
fn with_object(id: &str) -> Cond {
    Cond::all().add(Expr::col("physical_id").eq(plain(id)))
}

impl SqlStore {
    /// The resources of all projects whose object has this ID, for operators.
    ///
    /// # Errors
    /// Errors of the database.
    pub async fn resources_with_object(&self, id: &str) -> Result<Vec<Resource>, Error> {
        self.resources_of_project(None, with_object(id)).await
    }

    /// The resources of a project; `None`: of all projects.
    async fn resources_of_project(&self, project: Option<&str>, which: Cond) -> Result<Vec<Resource>, Error> {
        let mut select = Query::select();
        select.columns(Resource::columns()).from(schema::RESOURCE).cond_where(which);
        if let Some(project) = project {
            let of_project = Expr::col("project").eq(plain(project));
            let stacks = Query::select().column("id").from(schema::STACK).and_where(of_project).to_owned();
            select.and_where(Expr::col("stack").in_subquery(stacks));
        }
        select.order_by("seq", Order::Asc);
        self.retry(|| async {
            let rows = self.reader.query_all(&select).await?;
            rows.iter().map(|row| Columns::opening(row, &self.vault).read()).collect()
        })
        .await
    }

    /// Makes a change. A config with deployments is kept.
    pub(super) async fn change_software_in(&self, tx: &Transaction, change: &SoftwareChange) -> Result<(), Fault> {
        match change {
            SoftwareChange::PutConfig(config) => {
                let row = config.write(&self.vault)?;
                let kept = OnConflict::column("id").do_nothing_on(["id"]).to_owned();
                insert(tx, SoftwareConfig::TABLE, SoftwareConfig::COLUMNS, vec![row], Some(kept)).await
            }
            SoftwareChange::PutDeployment(deployment) => {
                let row = deployment.write(&self.vault)?;
                let replace = OnConflict::column("id").update_columns(SoftwareDeployment::changed_columns()).to_owned();
                let columns = SoftwareDeployment::COLUMNS;
                insert(tx, SoftwareDeployment::TABLE, columns, vec![row], Some(replace)).await
            }
            SoftwareChange::ChangeDeployment(deployment) => self.replace_deployment(tx, deployment).await,
            SoftwareChange::CancelDeployment(id) => {
                let select = select_deployments(Cond::all().add(schema::is_one_of("id", [plain(id)])));
                let Some(row) = tx.query_one(&select).await? else { return Ok(()) };
                let mut deployment: SoftwareDeployment = Columns::opening(&row, &self.vault).read()?;
                if deployment.cancel() { self.replace_deployment(tx, &deployment).await } else { Ok(()) }
            }
            SoftwareChange::DropConfig(id) => {
                if tx.query_one(&references(id)).await?.is_some() {
                    return Ok(());
                }
                drop_row(tx, schema::SOFTWARE_CONFIG, id).await
            }
            SoftwareChange::DropDeployment(id) => drop_row(tx, schema::SOFTWARE_DEPLOYMENT, id).await,
        }
    }

    async fn replace_deployment(&self, tx: &Transaction, new: &SoftwareDeployment) -> Result<(), Fault> {
        let row = new.write(&self.vault)?;
        let mut update = Query::update();
        update.table(schema::SOFTWARE_DEPLOYMENT).and_where(schema::is_one_of("id", [plain(&new.id)]));
        update.values(SoftwareDeployment::columns().zip(row).skip(1));
        tx.execute(&update).await?;
        Ok(())
    }

    async fn place_of_config(&self, id: &str) -> Result<Option<(i64, String)>, Fault> {
        let select = Query::select()
            .columns(["created", "id"])
            .from(schema::SOFTWARE_CONFIG)
            .and_where(schema::is_one_of("id", [plain(id)]))
            .to_owned();
        let row = self.reader.query_one(&select).await?;
        row.map(|row| {
            let mut columns = Columns::of(&row);
            Ok((columns.int()?, columns.text()?))
        })
        .transpose()
    }

    async fn count_rows(&self, table: &'static str, of: Cond) -> Result<u64, Error> {
        let select = Query::select().expr(Func::count(Expr::col("id"))).from(table).cond_where(of).to_owned();
        self.retry(|| async {
            match self.reader.query_one(&select).await? {
                Some(row) => Columns::of(&row).count(),
                None => Ok(0),
            }
        })
        .await
    }
}

/// Refuses a change that would leave a deployment without its config.
async fn check(tx: &Transaction, change: &SoftwareChange) -> Result<(), Fault> {
    match change {
        SoftwareChange::DropConfig(id) if tx.query_one(&references(id)).await?.is_some() => {
            Err(Error::Referenced(id.clone()).into())
        }
        SoftwareChange::PutDeployment(deployment) | SoftwareChange::ChangeDeployment(deployment) => {
            let config = Query::select()
                .column("id")
                .from(schema::SOFTWARE_CONFIG)
                .and_where(schema::is_one_of("id", [plain(&deployment.config)]))
                .to_owned();
            match tx.query_one(&config).await? {
                Some(_) => Ok(()),
                None => Err(Error::NotFound(deployment.config.clone()).into()),
            }
        }
        _ => Ok(()),
    }
}

async fn drop_row(tx: &Transaction, table: &'static str, id: &str) -> Result<(), Fault> {
    let delete = Query::delete().from_table(table).and_where(schema::is_one_of("id", [plain(id)])).to_owned();
    tx.execute(&delete).await?;
    Ok(())
}

fn references(config: &str) -> SelectStatement {
    Query::select()
        .column("id")
        .from(schema::SOFTWARE_DEPLOYMENT)
        .and_where(schema::is_one_of("config", [plain(config)]))
        .limit(1)
        .to_owned()
}

/// The configs; a list does not read their bodies.
fn select_configs(with_body: bool) -> SelectStatement {
    let mut select = Query::select();
    for column in SoftwareConfig::columns() {
        if column == "body" && !with_body {
            select.expr(Expr::val(None::<String>));
        } else {
            select.column(column);
        }
    }
    select.from(schema::SOFTWARE_CONFIG).and_where(belongs_to_kiln()).to_owned()
}

fn select_deployments(of: Cond) -> SelectStatement {
    Query::select()
        .columns(SoftwareDeployment::columns())
        .from(schema::SOFTWARE_DEPLOYMENT)
        .cond_where(of)
        .and_where(belongs_to_kiln())
        .order_by("created", Order::Asc)
        .order_by("id", Order::Asc)
        .to_owned()
}

fn deployments_of(query: &DeploymentQuery) -> Cond {
    let mut all = Cond::all();
    if let Some(project) = &query.project {
        let project = plain(project);
        let of_users = Expr::col("user_project").eq(project.as_str());
        all = all.add(Cond::any().add(Expr::col("project").eq(project.as_str())).add(of_users));
    }
    all.add_option(query.server.as_ref().map(|server| Expr::col("server").eq(plain(server))))
}
