// Signing in with Keystone's credentials.

import { useSignal } from "@preact/signals";
import { ApiError, type Form, session, signIn } from "./api";
import { Failure, Field } from "./parts";

const METHODS: [Form["method"], string][] = [
  ["password", "Password"],
  ["application_credential", "Application credential"],
  ["token", "Token"],
];

export function Login({ again = false }: { again?: boolean }) {
  const method = useSignal<Form["method"]>("password");
  const error = useSignal<unknown>(undefined);
  const busy = useSignal(false);
  /** Whether Keystone has asked for a passcode. */
  const asksPasscode = useSignal(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const fields = Object.fromEntries(new FormData(form)) as Record<string, string>;
    busy.value = true;
    try {
      await signIn({ ...fields, method: method.value } as Form);
    } catch (failed) {
      const asks = failed instanceof ApiError && failed.type === "Passcode";
      asksPasscode.value ||= asks;
      error.value = asks ? undefined : failed;
    } finally {
      busy.value = false;
    }
  };
  const known = session.peek();
  const form = (
    <form onSubmit={submit} class="login">
      <label class="field">
        <span>Sign in with</span>
        <select value={method.value} onChange={(event) => (method.value = event.currentTarget.value as Form["method"])}>
          {METHODS.map(([key, label]) => (
            <option key={key} value={key}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {method.value === "password" && (
        <>
          <Field label="User" name="user" autocomplete="username" required defaultValue={known?.user.name} />
          <Field label="Password" name="password" type="password" autocomplete="current-password" required />
          {asksPasscode.value && (
            <Field
              label="Passcode"
              name="passcode"
              hint="Of your authenticator: your account asks for it"
              inputMode="numeric"
              autocomplete="one-time-code"
              autoFocus
              required
            />
          )}
          <Field label="Domain" name="domain" defaultValue="Default" required />
          <Field label="Project" name="project" hint="Empty: your first project" defaultValue={known?.project.name} />
        </>
      )}
      {method.value === "application_credential" && (
        <>
          <Field label="ID" name="id" autocomplete="off" required />
          <Field label="Secret" name="secret" type="password" autocomplete="off" required />
        </>
      )}
      {method.value === "token" && <Field label="Token" name="token" type="password" autocomplete="off" required />}
      <Failure error={error.value} />
      <button type="submit" class="main" disabled={busy.value}>
        Sign in
      </button>
    </form>
  );
  if (again) return form;
  return (
    <main class="narrow">
      <h1>Kiln</h1>
      {form}
    </main>
  );
}
