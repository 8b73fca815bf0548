//! Plans over the connection.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_store::{Approval, Error, NewPlan, Plan, PlanId, PlanQuery, PlanStore};

use super::StoreLink;

#[async_trait]
impl PlanStore for StoreLink {
    async fn save_plan(&self, new: &NewPlan) -> Result<(), Error> {
        let (sim, new) = (Arc::clone(&self.sim), new.clone());
        self.write("save_plan", async move { sim.store.save_plan(&new).await }).await
    }

    async fn plan(&self, project: &str, id: PlanId) -> Result<Option<Plan>, Error> {
        self.read("plan", self.inner().plan(project, id)).await
    }

    async fn plans(&self, query: &PlanQuery) -> Result<Vec<Plan>, Error> {
        self.read("plans", self.inner().plans(query)).await
    }

    async fn count_plans(&self, project: &str) -> Result<u64, Error> {
        self.read("count_plans", self.inner().count_plans(project)).await
    }

    async fn plan_parts(&self, plan: PlanId, path: Option<&str>) -> Result<Vec<String>, Error> {
        self.read("plan_parts", self.inner().plan_parts(plan, path)).await
    }

    async fn reject_plan(&self, plan: PlanId) -> Result<bool, Error> {
        let sim = Arc::clone(&self.sim);
        self.write("reject_plan", async move { sim.store.reject_plan(plan).await }).await
    }

    async fn approve_plan(&self, approval: &Approval) -> Result<(), Error> {
        let (sim, approval) = (Arc::clone(&self.sim), approval.clone());
        self.write("approve_plan", async move { sim.store.approve_plan(&approval).await }).await
    }

    async fn approvals(&self, plan: PlanId) -> Result<Vec<Approval>, Error> {
        self.read("approvals", self.inner().approvals(plan)).await
    }

    async fn delete_plans(&self, ids: &[PlanId]) -> Result<Vec<PlanId>, Error> {
        let (sim, ids) = (Arc::clone(&self.sim), ids.to_vec());
        self.write("delete_plans", async move { sim.store.delete_plans(&ids).await }).await
    }
}
