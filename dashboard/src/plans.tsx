// Saved plans: list, approve, reject, execute.

import { useSignal } from "@preact/signals";
import { get, path, post, session } from "./api";
import { Command, Failure, Id, Loading, LongTable, useLoaded, when } from "./parts";
import { type PlanDocument, PlanTable } from "./plan_table";
import { goWhenDone, link } from "./route";

interface Plan {
  id: string;
  stack_name: string;
  stack_id: string;
  action: string;
  status: string;
  description: string;
  totals: Record<string, number>;
  created_at: string;
  expires_at: string;
  user_name: string | null;
  user_id: string | null;
  approvals: { user_name?: string; user_id?: string }[];
  approvals_needed: number;
  document: PlanDocument | null;
}

export function PlansView() {
  const { value, error } = useLoaded(async () => (await get<{ plans: Plan[] }>("/plans")).plans, []);
  if (!value.value) return <main tabIndex={-1}><Loading error={error.value} /></main>;
  return (
    <main tabIndex={-1}>
      <h1>Plans</h1>
      {value.value.length === 0 && <p>There is no saved plan in this project.</p>}
      <LongTable
        label="Plans"
        rows={value.value}
        keyOf={(plan) => plan.id}
        head={
          <>
            <th>Plan</th>
            <th>Stack</th>
            <th>Status</th>
            <th>By</th>
            <th>Expires</th>
          </>
        }
        row={(plan) => (
          <>
            <td>
              <a href={link("plans", plan.id)}>
                {plan.action.toLowerCase()} {when(plan.created_at)}
              </a>
            </td>
            <td>{plan.stack_name}</td>
            <td>{plan.status.toLowerCase()}</td>
            <td>{plan.user_name ?? plan.user_id}</td>
            <td>{when(plan.expires_at)}</td>
          </>
        )}
      />
    </main>
  );
}

export function PlanPage({ id }: { id: string }) {
  const base = path("plans", id);
  const { value, error, reload } = useLoaded(async () => (await get<{ plan: Plan }>(base)).plan, [id]);
  const failed = useSignal<unknown>(undefined);
  const plan = value.value;
  if (!plan) return <main tabIndex={-1}><Loading error={error.value} /></main>;
  const act = async (what: "approve" | "reject" | "execute" | "renew") => {
    const goOn = goWhenDone();
    try {
      const answer = await post<{ stack?: { id: string; stack_name: string } } | null>(`${base}/${what}`, {});
      failed.value = undefined;
      if (what === "execute" && answer?.stack) goOn("stacks", answer.stack.stack_name, answer.stack.id, "time");
      else reload();
    } catch (reason) {
      failed.value = reason;
    }
  };
  const missing = plan.approvals_needed - plan.approvals.length;
  const ended = plan.status !== "READY";
  const own = plan.user_id === session.value?.user.id;
  return (
    <main tabIndex={-1}>
      <p class="crumbs">
        <a href={link("plans")}>Plans</a> / {plan.stack_name}
      </p>
      <div class="bar">
        <h1>
          {plan.action.toLowerCase()} {plan.stack_name}
        </h1>
        <span>{plan.status.toLowerCase()}</span>
        <Id id={plan.id} />
        <button type="button" disabled={ended} onClick={() => act("approve")}>
          Approve
        </button>
        <button type="button" disabled={ended} onClick={() => act("reject")}>
          Reject
        </button>
        <button type="button" class="main" disabled={ended} onClick={() => act("execute")}>
          Execute
        </button>
      </div>
      <p>
        {plan.description} By {plan.user_name ?? plan.user_id}, {when(plan.created_at)}; expires {when(plan.expires_at)}.{" "}
        {missing > 0 && `${missing} more ${missing === 1 ? "approval is" : "approvals are"} needed.`}{" "}
        {missing > 0 && own && "Your own does not count."}
      </p>
      <Failure error={failed.value} />
      {plan.document && <PlanTable plan={plan.document} />}
      <Command text={`kiln plan show ${plan.id}`} />
    </main>
  );
}
