// A stack: its state and its views.

import { get } from "../api";
import { Failure, Id, kindOf, Loading, Status, Tabs, useLoaded, when } from "../parts";
import { link } from "../route";
import { isKiln } from "../service";
import { ShapeView } from "../shape/shape_view";
import { Actions } from "./actions";
import { ChangeView } from "./change_view";
import { DriftView } from "./drift_view";
import { EventsView } from "./events_view";
import { firstFailure, operationsOf } from "./operations";
import { OperationsView } from "./operations_view";
import { OutputsView } from "./outputs_view";
import { ResourcePage } from "./resource_page";
import { ResourcesView } from "./resources_view";
import { type StackData, useStack } from "./stack_data";
import { TemplateView } from "./template_view";
import { TimeView } from "./time_view";
import { keyOf } from "./tree";

const TABS: [string, string][] = [
  ["resources", "Resources"],
  ["time", "Time"],
  ["shape", "Shape"],
  ["events", "Events"],
  ["outputs", "Outputs"],
  ["template", "Template"],
  ["operations", "Operations"],
  ["drift", "Drift"],
  ["change", "Change"],
];

/** The views that a Heat has nothing for. */
const KILNS = ["operations", "drift"];

interface OperationJson {
  id: string;
  status: string;
  root_cause: { resource_path: string; resource_type: string; error: string; message: string } | null;
}

/** The first failure of the latest operation: those that follow from it are not shown. */
function RootCause({ base, turn }: { base: string; turn: number }) {
  const load = async () => {
    const { operations } = await get<{ operations: OperationJson[] }>(`${base}/operations?limit=1`);
    const latest = operations[0];
    return latest && (await get<{ operation: OperationJson }>(`${base}/operations/${latest.id}`)).operation.root_cause;
  };
  const { value } = useLoaded(load, [base, turn]);
  const cause = value.value;
  if (!cause) return null;
  return <Cause of={`${cause.resource_path} (${cause.resource_type})`} text={`${cause.error}: ${cause.message}`} />;
}

function Cause({ of, text }: { of: string; text: string }) {
  return (
    <p class="failure" role="alert">
      <strong>Root cause: {of}</strong>
      <br />
      {text}
    </p>
  );
}

/** The same, as far as the events of a Heat tell. */
function FirstFailure({ data }: { data: StackData }) {
  const [latest] = operationsOf(data.events.value ?? [], data.root);
  const tree = data.tree.value.value;
  const event = latest && tree && firstFailure(latest, tree);
  if (!event) return null;
  const resource = tree.get(keyOf(event.stack.id, event.resource));
  const place = resource ? `${resource.path.join("/")} (${resource.type})` : event.resource;
  return <Cause of={place} text={event.reason} />;
}

export function StackPage(props: { name: string; id: string; tab: string; below: string[] }) {
  const data = useStack({ name: props.name, id: props.id });
  const { stack, tree, turn } = data;
  const current = stack.value.value;
  if (!current) return <main tabIndex={-1}><Loading error={stack.error.value} /></main>;
  const base = ["stacks", props.name, props.id];
  const failed = kindOf(current.stack_status) === "failed";
  return (
    <main tabIndex={-1}>
      <p class="crumbs">
        <a href={link("stacks")}>Stacks</a> / <a href={link(...base)}>{current.stack_name}</a>
        {props.tab === "resource" && ` / ${props.below[2] ?? ""}`}
      </p>
      <div class="bar">
        <h1>{current.stack_name}</h1>
        <Status status={current.stack_status} />
        <Id id={current.id} />
        <span class="quiet">{when(current.updated_time ?? current.creation_time)}</span>
        <Actions data={data} stack={current} />
      </div>
      <Failure error={stack.error.value ?? tree.error.value} />
      {failed && <p>{current.stack_status_reason}</p>}
      {failed && (isKiln.value ? <RootCause base={data.base} turn={turn.value} /> : <FirstFailure data={data} />)}
      <Tabs base={base} tabs={TABS.filter(([key]) => isKiln.value || !KILNS.includes(key))} current={props.tab} />
      <Tab data={data} tab={props.tab} below={props.below} />
    </main>
  );
}

function Tab({ data, tab, below }: { data: StackData; tab: string; below: string[] }) {
  if (!isKiln.value && KILNS.includes(tab)) return <p>A Heat has no such view.</p>;
  switch (tab) {
    case "time":
      return <TimeView data={data} />;
    case "shape":
      return <ShapeView data={data} />;
    case "events":
      return <EventsView data={data} />;
    case "outputs":
      return <OutputsView data={data} />;
    case "template":
      return <TemplateView data={data} />;
    case "operations":
      return <OperationsView data={data} />;
    case "drift":
      return <DriftView data={data} />;
    case "change":
      return <ChangeView data={data} />;
    case "resource":
      return <ResourcePage key={below.join("/")} data={data} stack={{ name: below[0] ?? "", id: below[1] ?? "" }} name={below[2] ?? ""} />;
    default:
      return <ResourcesView data={data} />;
  }
}
