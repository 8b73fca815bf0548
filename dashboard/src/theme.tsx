// Light, dark or high contrast; without a choice as the system has it.

import { effect, signal } from "@preact/signals";

const THEMES = ["system", "light", "dark", "contrast"];
const KEY = "kiln-theme";

function stored(): string {
  try {
    const theme = localStorage.getItem(KEY);
    return theme && THEMES.includes(theme) ? theme : "system";
  } catch {
    return "system";
  }
}

export const theme = signal(stored());

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // A browser without storage asks again next time.
  }
});

export function ThemeChoice() {
  return (
    <label>
      <span class="hidden">Theme</span>
      <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value)}>
        {THEMES.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
