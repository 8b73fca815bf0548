// The page: who is signed in, and the view of the address.

import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { changeProject, changeRegion, expired, loadSession, projects, regions, scope, session, signOut } from "./api";
import { GuardsView } from "./guards";
import { follow, isLive } from "./live";
import { Login } from "./login";
import { NewStack } from "./new_stack";
import { OperatorView } from "./operator";
import { Dialog, Failure, Loading, useLoaded } from "./parts";
import { PlanPage, PlansView } from "./plans";
import { go, link, route } from "./route";
import { discoverService, isKiln, POLL, ServiceView } from "./service";
import { StackPage } from "./stack/stack_page";
import { StacksView } from "./stacks";
import { ThemeChoice } from "./theme";
import { TypePage, TypesView } from "./types";

const lost = signal<unknown>(undefined);

/** The views that a Heat has nothing for. */
const KILNS = ["plans", "guards"];

function View() {
  const [what = "stacks", ...rest] = route.value;
  if (what === "stacks" && rest.length >= 2) {
    const [name, id, tab = "resources", ...below] = rest as [string, string, string?, ...string[]];
    return <StackPage key={id} name={name} id={id} tab={tab} below={below} />;
  }
  if (what === "stacks") return <StacksView />;
  if (what === "new") return <NewStack />;
  if (!isKiln.value && KILNS.includes(what)) return <ServiceView />;
  if (what === "plans" && rest[0]) return <PlanPage key={rest[0]} id={rest[0]} />;
  if (what === "plans") return <PlansView />;
  if (what === "guards") return <GuardsView />;
  if (what === "types" && rest[0]) return <TypePage key={rest[0]} name={rest[0]} />;
  if (what === "types") return <TypesView />;
  if (what === "operator") return <OperatorView />;
  if (what === "service") return <ServiceView />;
  return (
    <main>
      <h1>There is no such view</h1>
      <p>
        <a href={link("stacks")}>All stacks</a>
      </p>
    </main>
  );
}

function ProjectChoice() {
  const { value } = useLoaded(projects, [session.value?.project.id]);
  const current = session.value!.project;
  const choose = (event: Event) => {
    const id = (event.target as HTMLSelectElement).value;
    changeProject(id).then(() => go("stacks"), (error) => (lost.value = error));
  };
  const all = value.value ?? [current];
  return (
    <label>
      <span class="hidden">Project</span>
      <select value={current.id} onChange={choose}>
        {(all.some(({ id }) => id === current.id) ? all : [current, ...all]).map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function RegionChoice() {
  if (regions.value.length < 2) return null;
  const choose = (event: Event) =>
    changeRegion((event.target as HTMLSelectElement).value).then(() => go("stacks"), (error) => (lost.value = error));
  return (
    <label>
      <span class="hidden">Region</span>
      <select value={session.value!.region ?? ""} onChange={choose}>
        {regions.value.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

function Header() {
  const [what = "stacks"] = route.value;
  const all: [string, string][] = [["stacks", "Stacks"], ["plans", "Plans"], ["guards", "Guards"], ["types", "Types"]];
  const views = all.filter(([key]) => isKiln.value || !KILNS.includes(key));
  if (session.value!.roles.includes("admin")) views.push(["operator", "Operator"]);
  return (
    <header>
      <button type="button" class="skip" onClick={() => document.querySelector("main")?.focus()}>
        Skip to the content
      </button>
      <a class="brand" href={link("stacks")}>
        Kiln
      </a>
      <nav aria-label="Main">
        {views.map(([key, label]) => (
          <a key={key} href={link(key)} aria-current={key === what ? "page" : undefined}>
            {label}
          </a>
        ))}
      </nav>
      {isKiln.value ? (
        <span class={isLive.value ? "live" : "live off"} role="status">
          {isLive.value ? "live" : "not live: connecting"}
        </span>
      ) : (
        <a href={link("service")}>Heat: asked every {POLL / 1000} s</a>
      )}
      <RegionChoice />
      <ProjectChoice />
      <ThemeChoice />
      <span class="user">{session.value!.user.name}</span>
      <button type="button" onClick={() => signOut().catch((error) => (lost.value = error))}>
        Sign out
      </button>
    </header>
  );
}

function Page() {
  if (session.value === undefined) return <Loading error={lost.value} />;
  if (session.value === null) return <Login />;
  return (
    <>
      {isKiln.value === undefined ? (
        <Loading error={lost.value} />
      ) : (
        <>
          <Header />
          <Failure error={lost.value} />
          <View key={scope.value} />
        </>
      )}
      {expired.value && (
        <Dialog title="Your session has expired" close={() => (expired.value = false)}>
          <p>Sign in again to continue. Nothing on this page is lost.</p>
          <Login again />
        </Dialog>
      )}
    </>
  );
}

effect(() => {
  const [what = "stacks", name] = route.value;
  document.title = `${name ?? what} · Kiln`;
});
loadSession().catch((error) => (lost.value = error));
discoverService();
follow();
render(<Page />, document.body);
