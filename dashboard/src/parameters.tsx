// The parameters of a template, as fields of a form.

import { useId } from "preact/hooks";
import { choices, type NameAndId } from "./api";
import { Field, useLoaded } from "./parts";

export interface Parameter {
  Type: string;
  Description: string;
  Label: string;
  NoEcho: string;
  Default?: unknown;
  AllowedValues?: unknown[];
  CustomConstraint?: string;
}

export interface Validated {
  Description: string;
  Parameters: Record<string, Parameter>;
}

/** The constraints that the cloud has lists for. */
const LISTED = /^(cinder\.(volume|vtype)|glance\.image|neutron\.(network|port|router|security_group|subnet)|nova\.(flavor|keypair|server))$/;

/** What the cloud has for a parameter, to choose from while another text can be typed. A name that several have is no choice. */
function Choices({ id, constraint }: { id: string; constraint: string }) {
  // Without the list, the text is typed.
  const { value } = useLoaded(() => choices(constraint).catch((): NameAndId[] => []), [constraint]);
  const all = value.value ?? [];
  const isOne = (name: string) => name !== "" && all.filter((one) => one.name === name).length === 1;
  return (
    <datalist id={id}>
      {all.map(({ id, name }) => (
        <option key={id} value={isOne(name) ? name : id} label={id === name ? name : `${name} (${id})`} />
      ))}
    </datalist>
  );
}

/** The field of a parameter. Empty: `present`, the value that stays, or the default. */
export function ParameterField(props: {
  name: string;
  parameter: Parameter;
  value: string;
  present?: string | undefined;
  given: (value: string) => void;
}) {
  const { name, parameter, value, present } = props;
  const id = useId();
  const hidden = parameter.NoEcho === "true";
  const type = (event: Event) => props.given((event.currentTarget as HTMLInputElement).value);
  const standard = present ?? (parameter.Default === undefined ? "" : String(parameter.Default));
  if (parameter.AllowedValues && !hidden) {
    return (
      <div class="field">
        <label for={id}>{parameter.Label}</label>
        <select id={id} name={name} value={value || standard} required onChange={type} aria-describedby={`${id}-hint`}>
          {standard === "" && <option value="">choose one</option>}
          {parameter.AllowedValues.map((value) => (
            <option key={String(value)} value={String(value)}>
              {String(value)}
            </option>
          ))}
        </select>
        <small class="quiet" id={`${id}-hint`}>
          {parameter.Description}
        </small>
      </div>
    );
  }
  const stays = hidden && present !== undefined ? "Hidden. Empty: it stays. " : "";
  const constraint = parameter.CustomConstraint;
  const list = constraint !== undefined && LISTED.test(constraint) && !hidden ? `${id}-choices` : undefined;
  const field = (
    <Field
      list={list}
      label={parameter.Label}
      name={name}
      type={hidden ? "password" : "text"}
      hint={stays + parameter.Description}
      placeholder={hidden ? "" : standard}
      required={parameter.Default === undefined && present === undefined}
      autocomplete={hidden ? "new-password" : "off"}
      value={value}
      onInput={type}
    />
  );
  if (!list) return field;
  return (
    <>
      {field}
      <Choices id={list} constraint={constraint!} />
    </>
  );
}
