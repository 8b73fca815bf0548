// The resource types: what a template may contain.

import { useSignal } from "@preact/signals";
import { get, path } from "./api";
import { Command, Loading, LongTable, Search, searched, useLoaded } from "./parts";
import { link } from "./route";
import { shown, yaml } from "./value";

interface TypeInList {
  resource_type: string;
  description: string | null;
}

type Constraint = Record<string, unknown> & { description?: string };

interface Property {
  type: string;
  required: boolean;
  update_allowed: boolean;
  immutable: boolean;
  description?: string;
  default?: unknown;
  constraints?: Constraint[];
  /** The entries of a map, or the items of a list under '*'. */
  schema?: Record<string, Property>;
}

interface TypeJson {
  properties: Record<string, Property>;
  attributes: Record<string, { type?: string; description?: string }>;
  support_status: { status: string; version: string | null; message: string | null };
}

export function TypesView() {
  const search = useSignal("");
  const load = async () => (await get<{ resource_types: TypeInList[] }>("/resource_types?with_description=true")).resource_types;
  const { value, error } = useLoaded(load, []);
  if (!value.value) return <main tabIndex={-1}><Loading error={error.value} /></main>;
  const matches = searched(search.value);
  const found = value.value.filter((one) => matches(`${one.resource_type} ${one.description ?? ""}`));
  return (
    <main tabIndex={-1}>
      <h1>Resource types</h1>
      <div class="bar">
        <Search text={search} label="Search types" hint="name, description" />
        <span class="quiet">
          {found.length} of {value.value.length}
        </span>
      </div>
      <LongTable
        label="Resource types"
        rows={found}
        keyOf={(one) => one.resource_type}
        head={
          <>
            <th>Type</th>
            <th>Description</th>
          </>
        }
        row={(one) => (
          <>
            <td>
              <a href={link("types", one.resource_type)}>{one.resource_type}</a>
            </td>
            <td class="reason" title={one.description ?? ""}>
              {one.description}
            </td>
          </>
        )}
      />
      <Command text="kiln resource-type list" />
    </main>
  );
}

interface Row {
  /** Its names from the property on: `networks.*.port`. */
  place: string;
  depth: number;
  property: Property;
}

function rows(properties: Record<string, Property>, above = "", depth = 0): Row[] {
  return Object.entries(properties).flatMap(([name, property]) => {
    const place = above ? `${above}.${name}` : name;
    return [{ place, depth, property }, ...rows(property.schema ?? {}, place, depth + 1)];
  });
}

/** What a value must be, in words. */
function limits({ constraints = [] }: Property): string {
  const words = ({ description, ...rules }: Constraint) =>
    Object.entries(rules).map(([rule, value]) => `${rule.replaceAll("_", " ")}: ${shown(value)}`);
  return constraints.flatMap(words).join("; ");
}

function change(property: Property): string {
  if (property.immutable) return "never";
  return property.update_allowed ? "in place" : "replaces";
}

export function TypePage({ name }: { name: string }) {
  const base = path("resource_types", name);
  const type = useLoaded(() => get<TypeJson>(base), [name]);
  const template = useLoaded(() => get<unknown>(`${base}/template?template_type=hot`), [name]);
  const one = type.value.value;
  if (!one) return <main tabIndex={-1}><Loading error={type.error.value} /></main>;
  const { status, version, message } = one.support_status;
  return (
    <main tabIndex={-1}>
      <p class="crumbs">
        <a href={link("types")}>Types</a> / {name}
      </p>
      <h1>{name}</h1>
      <p class="quiet">
        {status.toLowerCase()}
        {version && ` since ${version}`}
        {message && `: ${message}`}
      </p>
      <h2>Properties</h2>
      <LongTable
        label="Properties"
        rows={rows(one.properties)}
        keyOf={(row) => row.place}
        head={
          <>
            <th>Property</th>
            <th>Type</th>
            <th>Required</th>
            <th>A change</th>
            <th>Default</th>
            <th>Description</th>
          </>
        }
        row={({ place, depth, property }) => {
          const text = [property.description, limits(property)].filter(Boolean).join(" — ");
          return (
            <>
              <td style={{ paddingLeft: `${0.5 + 1.2 * depth}rem` }} title={place}>
                <code>{place.split(".").pop()}</code>
              </td>
              <td>{property.type}</td>
              <td>{property.required ? "yes" : ""}</td>
              <td>{depth === 0 ? change(property) : ""}</td>
              <td>{property.default === undefined ? "" : shown(property.default)}</td>
              <td class="reason" title={text}>
                {text}
              </td>
            </>
          );
        }}
      />
      <h2>Attributes</h2>
      <dl>
        {Object.entries(one.attributes).map(([key, { description }]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{description}</dd>
          </div>
        ))}
      </dl>
      <h2>A template of it</h2>
      {template.value.value ? <pre>{yaml(template.value.value).trimStart()}</pre> : <Loading error={template.error.value} />}
      <Command text={`kiln resource-type show ${name}`} />
    </main>
  );
}
